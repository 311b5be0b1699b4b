import { forkDrafts } from '../../harness/fork.ts';
import { isCall } from '../../protocol/event.ts';
import { mint, type SessionId } from '../../protocol/ids.ts';
import { draft, type LogRecord } from '../../protocol/record.ts';
import { workFolder } from '../../sandbox/work-folder.ts';
import { fold } from '../../session/fold.ts';
import { person, type Via } from '../actions.ts';
import type { LiveSession } from '../live-session.ts';
import { needTrust, Refusal } from '../refusal.ts';
import type { Point } from './points.ts';

/**
 * Makes a new session of the same past up to a point, and returns its id. One that works on a copy of its own gets the
 * files as they were; where the files are the folder's, they are left as they are. Throws `Refusal`, `AppendFailed`.
 */
export async function forkSession(session: LiveSession, point: Point, via: Via): Promise<SessionId> {
  needTrust();
  if (session.newer) throw new Refusal('A newer Drover wrote this session, so it can only be read here.');
  const { project } = session;
  const { records } = await project.store.read(session.id);
  const prefix = records.filter(({ seq }) => seq <= point.at.seq);
  const state = fold(prefix);
  const id = mint.session();
  const from = { session: session.id, seq: point.at.seq, hash: point.at.hash };
  const title = `${session.title} (fork)`;
  const drafts = forkDrafts({ state, from, id, title, actor: person(via), now: Date.now() });
  if (point.taken) {
    const checkpoints = await project.checkpoints();
    const { commit } = point.taken.checkpoint;
    await checkpoints.keep(id, commit);
    if (state.environment.workspace === 'isolated') {
      const { environment } = state;
      await checkpoints.writeTo(workFolder({ session: id, environment, workspaceFolder: project.path }), commit);
    }
    // It was taken a moment after the point, when the call's result was in the log already.
    if (point.taken.seq > point.at.seq) drafts.push(again(point.taken.checkpoint, prefix));
  }
  await project.store.fork(from, id, drafts);
  return id;
}

/** The checkpoint as an event of the fork. Calls that the fork does not have are not named. */
function again(checkpoint: NonNullable<Point['taken']>['checkpoint'], prefix: readonly LogRecord[]) {
  const { id: _, type: __, processed_at: ___, ...fields } = checkpoint;
  const calls = new Set(prefix.flatMap(({ event }) => (isCall(event) ? [event.id] : [])));
  return draft('drover.checkpoint', {
    ...fields,
    tool_use_ids: fields.tool_use_ids.filter((call) => calls.has(call)),
  });
}
