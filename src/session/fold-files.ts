import type { EventOf } from '../protocol/event.ts';
import type { LogRecord } from '../protocol/record.ts';
import type { SessionState } from './state.ts';

/** Names of files a notice keeps: it is read, not searched. */
const NAMES = 20;

/** A checkpoint belongs to the calls it names; one that names none is somebody else's work. */
export function foldCheckpoint(state: SessionState, record: LogRecord, event: EventOf<'drover.checkpoint'>): void {
  state.checkpoint = { commit: event.commit, seq: record.seq };
  state.checkpointProblem = null;
  for (const id of event.tool_use_ids) {
    state.calls.get(id)?.checkpoints.push({ id: event.id, commit: event.commit, files: event.files_changed });
  }
}

/** All threads share the files, so each is told. */
export function foldRestored(state: SessionState, record: LogRecord, event: EventOf<'drover.files_restored'>): void {
  const notice = {
    kind: 'restored',
    files: event.files_changed,
    names: event.files.slice(0, NAMES).map((file) => file.path),
    actor: record.local?.actor ?? null,
  } as const;
  for (const thread of state.threads.values()) {
    thread.entries.push({
      type: 'notice',
      id: event.id,
      seq: record.seq,
      at: record.at,
      notice: { ...notice, names: [...notice.names] },
    });
  }
}

/** What was copied is another session's past: its sandboxes are that session's and not to be used here. */
export function foldForked(state: SessionState, record: LogRecord, event: EventOf<'drover.forked_from'>): void {
  state.forkedFrom = { session: event.session_id, seq: event.seq };
  if (event.new_session_id) state.id = event.new_session_id;
  state.sandbox = null;
  for (const box of state.sandboxes.values()) {
    if (box.state === 'ready' || box.state === 'provisioning') box.state = 'removed';
  }
  for (const thread of state.threads.values()) {
    thread.entries.push({
      type: 'notice',
      id: event.id,
      seq: record.seq,
      at: record.at,
      notice: { kind: 'forked', from: event.session_id, fromSeq: event.seq },
    });
  }
}
