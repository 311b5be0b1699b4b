import { html, nothing, type TemplateResult } from 'lit';
import type { EventId, ThreadId } from '../src/protocol/ids.ts';
import type { CheckpointAct } from '../src/protocol/panel.ts';
import type { SessionState, ThreadInput, ToolCall } from '../src/session/state.ts';
import { icon, iconButton } from './parts.ts';
import type { Store } from './store.ts';

/** Asks the host; what can't be done is a sentence at the top of the panel. */
function ask(store: Store, act: CheckpointAct, id: EventId): void {
  void store.host.request({ type: 'checkpoint', act, id }).then((problem) => {
    if (problem) store.setProblem(problem);
  });
}

const link = (store: Store, sign: string, words: string, act: CheckpointAct, id: EventId): TemplateResult =>
  html`<button type="button" class="link-button" @click=${() => ask(store, act, id)}>${icon(sign)} ${words}</button>`;

/** Nothing can be done with a session that is only read: its files are not here. */
const readOnly = (store: Store): boolean => store.access.mode === 'read_only';

/** The ways from a call to the files: what changed, and back to how they were after it. */
export function callFiles(
  store: Store,
  session: SessionState,
  call: ToolCall,
  all: boolean,
): TemplateResult | typeof nothing {
  if (!call.result || readOnly(store)) return nothing;
  const changed = call.checkpoints.length > 0;
  return html`<div class="files-row" role="group" aria-label="Files at this call">
    ${changed ? link(store, 'diff-multiple', 'Changes by this call', 'changes_by_call', call.id) : nothing}
    ${all && changed ? link(store, 'diff-multiple', 'by this thread', 'changes_by_thread', call.id) : nothing}
    ${all && changed ? link(store, 'diff-multiple', 'by this session', 'changes_by_session', call.id) : nothing}
    ${session.checkpoint ? link(store, 'discard', 'Restore files to here', 'restore', call.id) : nothing}
    ${link(store, 'repo-forked', 'Fork session from here', 'fork', call.id)}
  </div>`;
}

/** The ways back to a checkpoint itself. */
export function momentFiles(store: Store, id: EventId): TemplateResult | typeof nothing {
  if (store.index.get(id)?.event.type !== 'drover.checkpoint' || readOnly(store)) return nothing;
  return html`<div class="files-row" role="group" aria-label="Files at this moment">
    ${link(store, 'discard', 'Restore files to here', 'restore', id)}${link(store, 'repo-forked', 'Fork session from here', 'fork', id)}
  </div>`;
}

/** The ways back to the moment before a person said something. */
export function inputFiles(store: Store, session: SessionState, input: ThreadInput): TemplateResult | typeof nothing {
  if (input.from !== 'person' || input.processedAt === null || readOnly(store)) return nothing;
  const restore = () => ask(store, 'restore', input.id);
  return html`${session.checkpoint ? iconButton('discard', 'Restore files to before this message', restore, 'on-hover') : nothing}${iconButton('repo-forked', 'Fork session from before this message', () => ask(store, 'fork', input.id), 'on-hover')}`;
}

/** In the header: all that the session's agents changed. */
export function sessionChanges(store: Store, session: SessionState): TemplateResult | typeof nothing {
  const call = someChange(session, null);
  if (!call || readOnly(store)) return nothing;
  const act = () => ask(store, 'changes_by_session', call);
  return iconButton('diff-multiple', 'Changes by this session', act);
}

/** Above a subagent's conversation: all that it changed. */
export function threadChanges(store: Store, session: SessionState, thread: ThreadId): TemplateResult | typeof nothing {
  const call = someChange(session, thread);
  if (!call || readOnly(store)) return nothing;
  return iconButton('diff-multiple', 'Changes by this thread', () => ask(store, 'changes_by_thread', call));
}

/** A call that changed files, of this thread or of any. */
function someChange(session: SessionState, thread: ThreadId | null): EventId | null {
  if (!session.checkpoint) return null;
  for (const call of session.calls.values()) {
    if (call.checkpoints.length > 0 && (thread === null || call.thread === thread)) return call.id;
  }
  return null;
}
