import type { SessionId } from '../../protocol/ids.ts';
import type { BytePath } from './byte-path.ts';
import { type FileChange, parseRawDiff } from './raw-diff.ts';
import type { Repository } from './repository.ts';
import type { Snapshot } from './work-tree.ts';

/** Files left out that a checkpoint remembers, so that putting files back leaves them alone. */
const REMEMBERED = 10_000;

/** Makes a checkpoint of a snapshot and lets the session keep it. Returns its commit. */
export async function commit(
  repository: Repository,
  session: SessionId,
  snapshot: Snapshot,
  parent: string | null,
): Promise<string> {
  const skipped = snapshot.skipped.slice(0, REMEMBERED).map(({ path, why, bytes }) => [path, why, bytes]);
  const message = `${session}\n\n${JSON.stringify({ skipped })}\n`;
  const who = `Drover <drover@localhost> ${Math.floor(Date.now() / 1000)} +0000`;
  const parents = parent ? `parent ${parent}\n` : '';
  const text = `tree ${snapshot.tree}\n${parents}author ${who}\ncommitter ${who}\n\n${message}`;
  const made = await repository.writeObject('commit', Buffer.from(text));
  await repository.keep(session, made);
  return made;
}

/** The tree of a checkpoint. Throws `GitFailed` if it is not there any more. */
export async function treeOf(repository: Repository, made: string): Promise<string> {
  return (await repository.run({}, ['rev-parse', '--verify', `${made}^{tree}`])).toString().trim();
}

/** The paths that were in the folder and not in the checkpoint. */
export async function skippedOf(repository: Repository, made: string): Promise<Set<BytePath>> {
  const text = (await repository.run({}, ['cat-file', 'commit', made])).toString();
  const at = text.indexOf('{"skipped":');
  return new Set(at < 0 ? [] : pathsIn(text.slice(at)));
}

function pathsIn(json: string): BytePath[] {
  const value: unknown = JSON.parse(json);
  if (typeof value !== 'object' || value === null || !('skipped' in value) || !Array.isArray(value.skipped)) return [];
  return value.skipped.flatMap((one: unknown) => (Array.isArray(one) && typeof one[0] === 'string' ? [one[0]] : []));
}

/** As `changesBetween`, of a tree that is still being made: git has started by the time it is there. */
export async function changesSince(repository: Repository, from: string, to: Promise<string>): Promise<FileChange[]> {
  const stdin = to.then((tree) => `${from} ${tree}\n`);
  const printed = await repository.run({}, ['diff-tree', '--stdin', '-r', '-z', '--raw'], { stdin });
  // A line of the pair comes first, then its changes.
  const text = printed.toString('latin1');
  return parseRawDiff(text.slice(text.indexOf('\n') + 1));
}

/** What became of each file between two trees, or commits. */
export async function changesBetween(repository: Repository, from: string, to: string): Promise<FileChange[]> {
  const printed = await repository.run({}, ['diff-tree', '-r', '-z', '--raw', from, to]);
  return parseRawDiff(printed.toString('latin1'));
}
