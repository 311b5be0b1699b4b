import { join } from 'node:path';
import * as vscode from 'vscode';
import { shown } from '../../sandbox/checkpoints/byte-path.ts';
import { workFolder } from '../../sandbox/work-folder.ts';
import { summary } from '../describe.ts';
import type { LiveSession } from '../live-session.ts';
import { Refusal } from '../refusal.ts';
import { blobUri } from './blob-files.ts';
import { type Changed, candidates, joined, type Whose } from './changes.ts';
import { checkpointsIn, short } from './points.ts';

/** Files that are shown at once; an editor of more is of no use to anybody. */
const MAX_FILES = 1000;

const WORDS = { call: 'this call', thread: 'this thread', session: 'this session' } as const;

/** The files somebody of a session changed, as they were and became. Throws `Refusal` where there are none. */
export async function changesOf(session: LiveSession, whose: Whose): Promise<Changed[]> {
  const { state, project } = session;
  if (!state) throw new Refusal('This session’s log can’t be read, so what it changed can’t be shown.');
  const { records } = await project.store.read(session.id);
  const taken = candidates(state, checkpointsIn(records), whose);
  const store = await project.checkpoints();
  const changes = await store.changes(taken.map(({ checkpoint }) => checkpoint.commit));
  const folder = workFolder({ session: session.id, environment: state.environment, workspaceFolder: project.path });
  const found = joined(state, folder, taken, changes, whose);
  if (found.length > 0) return found;
  const scope = whose === 'session' ? 'session' : 'call' in whose ? 'call' : 'thread';
  const why = state.checkpointProblem ? ` ${state.checkpointProblem}` : '';
  throw new Refusal(`No file was changed by ${WORDS[scope]}, as far as checkpoints tell.${why}`);
}

/** Opens VS Code's own diff of several files. Throws `Refusal`. */
export async function showChanges(session: LiveSession, whose: Whose): Promise<void> {
  const found = await changesOf(session, whose);
  const { root } = session.project.store;
  const resources = found.slice(0, MAX_FILES).map(({ path, before, after }) => {
    const name = shown(path);
    const side = (blob: string | null) => (blob === null ? undefined : blobUri(root, name, blob));
    return [vscode.Uri.file(join(session.project.path, name)), side(before), side(after)];
  });
  await vscode.commands.executeCommand('vscode.changes', title(session, whose), resources);
}

/** VS Code says how many files there are. */
function title(session: LiveSession, whose: Whose): string {
  const { state } = session;
  if (whose === 'session') return `Changes by “${session.title}”`;
  if ('thread' in whose) return `Changes by ${state?.threads.get(whose.thread)?.agentName ?? 'a thread'}`;
  const call = state?.calls.get(whose.call);
  return `Changes by ${call ? short(summary(call)) : 'a call'}`;
}
