import { type AnyEvent, isKnown, type KnownEvent } from '../src/protocol/event.ts';
import type { EventId, ExecutionId, SandboxId, ThreadId } from '../src/protocol/ids.ts';
import type { LogRecord } from '../src/protocol/record.ts';
import type { SandboxState } from '../src/session/state.ts';
import { NetworkLedger } from './network/ledger.ts';
import { sandboxName } from './status.ts';

/** One provisioning of a sandbox, for the timeline. */
export interface SandboxSpan {
  /** The `drover.sandbox_provisioning` event. */
  id: EventId;
  sandbox: SandboxId;
  from: string;
  /** null while it goes on. */
  to: string | null;
  failed: boolean;
  text: string;
}

/** The event whose story `event` belongs to, if it is not one of its own. */
function partOf(event: KnownEvent): EventId | null {
  switch (event.type) {
    case 'user.tool_confirmation':
    case 'user.tool_result':
    case 'agent.tool_result':
    case 'drover.tool_started':
    case 'drover.tool_recovered':
      return event.tool_use_id;
    case 'agent.mcp_tool_result':
      return event.mcp_tool_use_id;
    case 'user.custom_tool_result':
      return event.custom_tool_use_id;
    case 'span.model_request_end':
      return event.model_request_start_id;
    case 'drover.event_processed':
      return event.event_id;
    default:
      return null;
  }
}

/** What comes before a request and belongs to it. */
const opensRequest = (event: AnyEvent): boolean =>
  event.type === 'drover.context_assembled' || event.type === 'drover.budget_reserved';

/** Keeps the raw records by event id, and which of them tell one story: a call, its approval, its start, its result. */
export class RecordIndex {
  readonly #byId = new Map<EventId, LogRecord>();
  readonly #subjects = new Map<EventId, EventId>();
  readonly #stories = new Map<EventId, LogRecord[]>();
  readonly #beforeRequest = new Map<ThreadId, LogRecord[]>();
  readonly #provisionings = new Map<SandboxId, EventId>();
  readonly #calls = new Map<ExecutionId, EventId>();
  readonly sandboxes: SandboxSpan[] = [];
  readonly network = new NetworkLedger();

  add(record: LogRecord): void {
    const event = record.event;
    this.#byId.set(event.id, record);
    if (isKnown(event)) {
      if (record.thread && opensRequest(event)) {
        this.#beforeRequest.set(record.thread, [...(this.#beforeRequest.get(record.thread) ?? []), record]);
        return;
      }
      if (event.type === 'span.model_request_start' && record.thread) this.#joinRequest(record, record.thread);
      const subject =
        this.#connectionOf(event) ?? partOf(event) ?? this.#reservationOf(event) ?? this.#sandboxStory(event, record);
      if (subject) this.#subjects.set(event.id, subject);
    }
    this.#tell(this.subject(event.id), record);
  }

  get(id: EventId): LogRecord | undefined {
    return this.#byId.get(id);
  }

  /** The event that stands for the story `id` is part of: its own id, if it stands for itself. */
  subject(id: EventId): EventId {
    return this.#subjects.get(id) ?? id;
  }

  /** All records of one story, in log order. */
  story(subject: EventId): readonly LogRecord[] {
    return this.#stories.get(subject) ?? [];
  }

  /**
   * What a sandbox is called: as the record of its making has it. What the state says of one that is gone is why it
   * is gone, and of one that was found again, that.
   */
  nameOf(sandbox: SandboxState): string {
    const made = this.sandboxes.findLast((span) => span.sandbox === sandbox.id && span.to !== null && !span.failed);
    return sandboxName({ kind: sandbox.kind, detail: made?.text ?? sandbox.detail });
  }

  #tell(subject: EventId, record: LogRecord): void {
    const story = this.#stories.get(subject);
    if (story) story.push(record);
    else this.#stories.set(subject, [record]);
  }

  #joinRequest(start: LogRecord, thread: ThreadId): void {
    for (const record of this.#beforeRequest.get(thread) ?? []) {
      this.#subjects.set(record.event.id, start.event.id);
      this.#tell(start.event.id, record);
    }
    this.#beforeRequest.delete(thread);
  }

  #reservationOf(event: KnownEvent): EventId | null {
    return event.type === 'drover.budget_settled' ? this.subject(event.reservation_id) : null;
  }

  /** What a call did on the network is part of its story. */
  #connectionOf(event: KnownEvent): EventId | null {
    if (event.type === 'drover.tool_started') this.#calls.set(event.execution_id, event.tool_use_id);
    if (event.type !== 'drover.egress') return null;
    this.network.add(event);
    return event.execution_id ? (this.#calls.get(event.execution_id) ?? null) : null;
  }

  #sandboxStory(event: KnownEvent, record: LogRecord): EventId | null {
    if (event.type === 'drover.sandbox_provisioning') {
      this.#provisionings.set(event.sandbox_id, event.id);
      this.sandboxes.push({
        id: event.id,
        sandbox: event.sandbox_id,
        from: record.at,
        to: null,
        failed: false,
        text: event.recipe,
      });
      return null;
    }
    if (event.type === 'drover.sandbox_progress') {
      const making = this.sandboxes.findLast((one) => one.sandbox === event.sandbox_id);
      if (making?.to === null) making.text = event.lines.at(-1) ?? making.text;
      return this.#provisionings.get(event.sandbox_id) ?? null;
    }
    if (
      event.type !== 'drover.sandbox_ready' &&
      event.type !== 'drover.sandbox_failed' &&
      event.type !== 'drover.sandbox_lost' &&
      event.type !== 'drover.sandbox_removed'
    )
      return null;
    const span = this.sandboxes.findLast((one) => one.sandbox === event.sandbox_id);
    if (span && span.to === null) {
      span.to = record.at;
      span.failed = event.type !== 'drover.sandbox_ready';
      if (event.type === 'drover.sandbox_ready') span.text = event.detail;
    }
    return this.#provisionings.get(event.sandbox_id) ?? null;
  }
}
