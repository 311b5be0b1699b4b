import { Emitter } from '../src/protocol/disposable.ts';
import { isKnown, resultFor } from '../src/protocol/event.ts';
import type { EventId, SessionId, ThreadId } from '../src/protocol/ids.ts';
import type { Access, HostMessage } from '../src/protocol/panel.ts';
import type { BlobRef, LogRecord } from '../src/protocol/record.ts';
import { apply, fold } from '../src/session/fold.ts';
import type { Asking, SessionState } from '../src/session/state.ts';
import { Approvals } from './approvals.ts';
import { ms } from './format.ts';
import { Heartbeat, type Link } from './heartbeat.ts';
import { Host } from './host.ts';
import { Intake } from './intake.ts';
import { Previews } from './previews.ts';
import { RecordIndex } from './records.ts';
import { type Anchor, readSaved, type Saved, type Tab } from './saved.ts';

/** A blob that was asked for. */
export type Blob = { state: 'asked' } | { state: 'here'; text: string } | { state: 'failed'; problem: string };

/** A request of the host or of a command that a view has to act on once. */
export type Wish = { type: 'reveal'; id: EventId } | { type: 'focus_approval'; call: EventId };

/** What the panel is told while the history is read, until it is whole. */
interface Reading {
  session: SessionState | null;
  index: RecordIndex;
}

const SAVE_AFTER_MS = 250;

/**
 * Everything the panel knows, in one place. Views read it and are called once per animation frame when it changed.
 * What a session is comes from its records alone, through the fold that the host uses too.
 */
export class Store {
  readonly host = new Host();
  readonly previews = new Previews();
  readonly approvals = new Approvals(this.host, () => this.changed());
  readonly blobs = new Map<string, Blob>();
  /** Rows the person opened (true) or closed (false) against their default. */
  readonly expanded = new Map<string, boolean>();
  session: SessionState | null = null;
  index = new RecordIndex();
  access: Access = { mode: 'write' };
  /** The session says it runs, and nobody runs it. */
  interrupted = false;
  problem: string | null = null;
  /** Records read so far while a history is coming in, else null. */
  reading: number | null = null;
  selection: EventId | null = null;
  drawer: 'tree' | 'inspector' | null = null;
  /** Said by the live region; the number makes the same words be read again. */
  announcement = { n: 0, text: '' };
  readonly #heartbeat: Heartbeat;
  readonly #intake: Intake;
  readonly #updates = new Emitter<void>();
  readonly #wishes = new Emitter<Wish>();
  #sessionId: SessionId | null;
  #incoming: Reading | null = null;
  #thread: ThreadId | null;
  #tab: Tab;
  #draft: string;
  #anchor: Anchor | null;
  #clockOffset = 0;
  #frame = 0;
  #saving: ReturnType<typeof setTimeout> | undefined;

  /** Called after changes, at most once per animation frame. */
  readonly onUpdate = this.#updates.on;
  readonly onWish = this.#wishes.on;

  constructor(sessionId: SessionId | null) {
    const saved = readSaved(this.host.saved);
    const same = sessionId === null || saved.sessionId === sessionId;
    this.#sessionId = sessionId ?? saved.sessionId;
    this.#thread = same ? saved.thread : null;
    this.#tab = saved.tab;
    this.#draft = same ? saved.draft : '';
    this.#anchor = same ? saved.anchor : null;
    this.#heartbeat = new Heartbeat(
      () => this.host.post({ type: 'ready' }),
      (link) => this.#linkChanged(link),
    );
    this.#intake = new Intake({
      record: (record) => this.#record(record),
      message: (message) => this.#message(message),
      batchDone: (more) => this.#batchDone(more),
    });
    window.addEventListener('message', (event: MessageEvent<HostMessage>) => this.#receive(event.data));
    window.addEventListener('pagehide', () => this.#saveNow());
    this.#saveNow();
    this.#heartbeat.start();
  }

  get link(): Link {
    return this.#heartbeat.link;
  }

  /**
   * The host's clock, ms since 1970: durations of what still runs are measured against it. Where nobody works any more
   * it stands at the last event: what was under way then has not gone on since.
   */
  now(): number {
    if (this.interrupted && this.session) return ms(this.session.updatedAt);
    return Date.now() + this.#clockOffset;
  }

  /** True if this panel may send something to the session. */
  get writable(): boolean {
    return this.link === 'live' && this.access.mode === 'write';
  }

  /** The thread that is shown: the chosen one, else the primary. */
  get thread(): ThreadId | null {
    if (this.#thread && this.session?.threads.has(this.#thread)) return this.#thread;
    return this.session?.primary ?? null;
  }

  get tab(): Tab {
    return this.#tab;
  }

  get draft(): string {
    return this.#draft;
  }

  get anchor(): Anchor | null {
    return this.#anchor;
  }

  showThread(thread: ThreadId): void {
    if (this.thread !== thread) this.#anchor = null;
    this.#thread = thread;
    this.drawer = null;
    this.changed({ save: true });
  }

  showTab(tab: Tab): void {
    this.#tab = tab;
    this.changed({ save: true });
  }

  setDraft(draft: string): void {
    this.#draft = draft;
    this.changed({ save: true });
  }

  setAnchor(anchor: Anchor | null): void {
    this.#anchor = anchor;
    this.#saveSoon();
  }

  /** Shows the story of an event in the inspector; null closes it. */
  select(id: EventId | null): void {
    this.selection = id === null ? null : this.index.subject(id);
    this.drawer = this.selection === null ? null : 'inspector';
    this.changed();
  }

  toggleDrawer(drawer: 'tree' | 'inspector'): void {
    this.drawer = this.drawer === drawer ? null : drawer;
    this.changed();
  }

  setExpanded(key: string, expanded: boolean): void {
    this.expanded.set(key, expanded);
    this.changed();
  }

  /** Goes to an event wherever it is: its thread, its row, its story. */
  reveal(id: EventId): void {
    const subject = this.index.subject(id);
    const thread = this.index.get(subject)?.thread;
    if (thread && this.session?.threads.has(thread)) this.#thread = thread;
    this.#tab = 'conversation';
    this.selection = subject;
    this.changed({ save: true });
    this.#wishes.fire({ type: 'reveal', id: subject });
  }

  /** Brings the oldest call that waits for a person before their eyes and gives its card the focus. */
  focusApproval(call?: EventId): void {
    const session = this.session;
    const target = session && this.approvals.open(session).find((one) => !call || one.id === call);
    if (!session || !target) {
      this.announce('Nothing waits for you in this session.');
      return;
    }
    if (this.thread !== session.primary && this.thread !== target.thread) this.#thread = target.thread;
    this.#tab = 'conversation';
    this.drawer = null;
    this.changed({ save: true });
    this.#wishes.fire({ type: 'focus_approval', call: target.id });
  }

  /**
   * The call that the keyboard answers if no card has the focus: the oldest of those in the shown conversation,
   * else the oldest of all.
   */
  approvalTarget(): Asking | undefined {
    const session = this.session;
    if (!session) return undefined;
    const open = this.approvals.open(session);
    const thread = this.thread;
    return open.find((call) => thread === session.primary || call.thread === thread) ?? open[0];
  }

  announce(text: string): void {
    this.announcement = { n: this.announcement.n + 1, text };
    this.changed();
  }

  /** Asks the host for the whole of a value that the log keeps apart. */
  readBlob(blob: BlobRef): void {
    if (this.blobs.get(blob.sha256)?.state === 'asked') return;
    this.blobs.set(blob.sha256, { state: 'asked' });
    this.host.post({ type: 'read_blob', blob });
    this.changed();
  }

  setProblem(problem: string | null): void {
    this.problem = problem;
    this.changed();
  }

  changed(options: { save?: boolean } = {}): void {
    if (options.save) this.#saveSoon();
    if (this.#frame !== 0) return;
    // A hidden panel gets no frames; what it missed is drawn when it is shown.
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#updates.fire();
    });
  }

  #receive(message: HostMessage): void {
    if (message.type === 'hello') this.#heartbeat.hello();
    else this.#heartbeat.beat();
    this.#intake.push(message);
  }

  #linkChanged(link: Link): void {
    if (link === 'lost') {
      this.host.abandon();
      this.announce('The extension host of this panel has stopped.');
    }
    this.changed();
  }

  #message(message: Exclude<HostMessage, { type: 'records' }>): void {
    switch (message.type) {
      case 'hello':
        this.#hello(message);
        break;
      case 'alive':
        this.#clockOffset = message.now - Date.now();
        return;
      case 'preview':
        this.previews.add(message.preview);
        break;
      case 'access':
        this.access = message.access;
        this.interrupted = message.interrupted;
        break;
      case 'problem':
        this.problem = message.message;
        this.announce(message.message);
        break;
      case 'blob':
        this.blobs.set(
          message.sha256,
          message.text === null
            ? { state: 'failed', problem: message.problem ?? 'The stored output could not be read.' }
            : { state: 'here', text: message.text },
        );
        break;
      case 'reveal':
        this.reveal(message.id);
        break;
      case 'focus_approval':
        this.focusApproval();
        break;
      case 'reply':
        this.host.answered(message.to, message.problem);
        break;
    }
    this.changed();
  }

  #hello(hello: Extract<HostMessage, { type: 'hello' }>): void {
    this.host.abandon();
    this.#sessionId = hello.sessionId;
    this.access = hello.access;
    this.interrupted = false;
    this.problem = null;
    this.#clockOffset = hello.now - Date.now();
    this.previews.clear();
    // What is on screen stays until the new history is whole.
    this.#incoming = { session: null, index: new RecordIndex() };
    this.reading = 0;
    this.#saveSoon();
  }

  #record(record: LogRecord): void {
    const target: Reading = this.#incoming ?? this;
    try {
      if (target.session) apply(target.session, record);
      else target.session = fold([record]);
    } catch (error) {
      this.problem = `Record ${record.seq} of this session's log could not be read, so the panel may be incomplete: ${error instanceof Error ? error.message : String(error)}`;
      return;
    }
    if (this.reading !== null) this.reading++;
    // A stale writer's record is no part of the session.
    if (target.session.head.hash !== record.hash) return;
    target.index.add(record);
    this.#settle(record);
  }

  /** Lets go of what was only held until this record came. */
  #settle(record: LogRecord): void {
    const event = record.event;
    this.previews.replaced(event.id);
    if (!isKnown(event)) return;
    if (event.type === 'user.tool_confirmation') this.approvals.settled(event.tool_use_id);
    const call = resultFor(event);
    if (call) {
      this.previews.finished(call);
      this.approvals.settled(call);
    }
  }

  #batchDone(more: boolean): void {
    if (!more && this.#incoming) {
      this.session = this.#incoming.session;
      this.index = this.#incoming.index;
      this.#incoming = null;
      this.reading = null;
    }
    this.changed();
  }

  #saveSoon(): void {
    clearTimeout(this.#saving);
    this.#saving = setTimeout(() => this.#saveNow(), SAVE_AFTER_MS);
  }

  #saveNow(): void {
    const saved: Saved = {
      sessionId: this.#sessionId,
      thread: this.#thread,
      tab: this.#tab,
      draft: this.#draft,
      anchor: this.#anchor,
    };
    this.host.save(saved);
  }
}
