import { constants } from 'node:fs';
import { lstat, mkdir, open, readlink, rename, rm, rmdir, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf } from '../../protocol/errors.ts';
import { mint, type SessionId } from '../../protocol/ids.ts';
import { copyPaths, readBase, writeBase } from './base.ts';
import type { Change } from './changes.ts';
import { entryAt, isMissing, sameEntry, sha256 } from './entry.ts';

/** What came of bringing changes back. */
export interface Applied {
  files: { path: string; change: Change['change']; sha256: string | null }[];
  refused: { path: string; why: string }[];
}

/** Why one change can't be brought back. */
class Refusal extends Error {}

/**
 * Brings changes of a session's copy into the workspace folder, each file whole or not at all. One that the person has
 * changed meanwhile is refused, and so is one that is no longer in the copy as it was listed.
 * @param unsaved says whether an editor holds unsaved changes of a path (relative, slashes)
 */
export async function applyChanges(
  workspaceFolder: string,
  session: SessionId,
  changes: readonly Change[],
  unsaved: (path: string) => boolean,
): Promise<Applied> {
  const done: Applied = { files: [], refused: [] };
  // What is taken away first may make room: a file where there was a folder, or the other way round.
  const ordered = [...changes].sort((a, b) => Number(a.now !== null) - Number(b.now !== null));
  for (const change of ordered) {
    try {
      if (unsaved(change.path)) throw new Refusal('it is open in an editor with changes that are not saved');
      await applyOne(workspaceFolder, copyPaths(workspaceFolder, session).copy, change);
      done.files.push({ path: change.path, change: change.change, sha256: change.now?.sha256 ?? null });
    } catch (error) {
      done.refused.push({ path: change.path, why: messageOf(error) });
    }
  }
  await keepApplied(workspaceFolder, session, done);
  return done;
}

async function applyOne(folder: string, copy: string, change: Change): Promise<void> {
  const { path, base, now } = change;
  await assertOwnFolders(folder, path);
  const theirs = await entryAt(folder, path);
  if (theirs === 'other') throw new Refusal('something that is no file stands there in your folder');
  if (sameEntry(theirs, now)) return;
  if (!sameEntry(theirs, base)) throw new Refusal('you changed it since the session made its copy');
  const target = join(folder, path);
  if (now === null) {
    await rm(target);
    await removeEmptied(folder, copy, dirname(path));
    return;
  }
  await mkdir(dirname(target), { recursive: true });
  const draft = join(dirname(target), `.drover-${mint.execution()}`);
  try {
    if (now.kind === 'link') await writeLink(join(copy, path), draft, now.sha256);
    else await writeFileAs(await readAs(join(copy, path), now.sha256), draft, now.mode);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Every folder on the way is a real one: through a link a file would land elsewhere. */
async function assertOwnFolders(folder: string, path: string): Promise<void> {
  const parts = path.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..' || part === '.git'))
    throw new Refusal('its path is not one that may be written to');
  for (let n = 1; n < parts.length; n++) {
    const at = parts.slice(0, n).join('/');
    const info = await lstat(join(folder, at)).catch((error: unknown) => {
      if (isMissing(error)) return undefined;
      throw error;
    });
    if (info && !info.isDirectory()) throw new Refusal(`${at} is no folder in your workspace`);
  }
}

/** The bytes as they were listed: whatever is written to the copy meanwhile does not get in. */
async function readAs(from: string, hash: string): Promise<Buffer> {
  const file = await open(from, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const bytes = await file.readFile();
    if (sha256(bytes) !== hash) throw new Refusal('the session changed it again since it was listed; review it anew');
    return bytes;
  } finally {
    await file.close();
  }
}

async function writeFileAs(bytes: Buffer, to: string, mode: number): Promise<void> {
  const file = await open(to, 'wx', 0o600);
  try {
    await file.writeFile(bytes);
    await file.chmod(mode);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function writeLink(from: string, to: string, hash: string): Promise<void> {
  const target = await readlink(from);
  if (sha256(target) !== hash) throw new Refusal('the session changed it again since it was listed; review it anew');
  await symlink(target, to);
}

/** Folders that the session has taken away, as far as nothing of the person's is left in them. */
async function removeEmptied(folder: string, copy: string, path: string): Promise<void> {
  for (let at = path; at !== '.' && at !== ''; at = dirname(at)) {
    if (await lstat(join(copy, at)).catch(() => undefined)) return;
    const gone = await rmdir(join(folder, at)).then(
      () => true,
      () => false,
    );
    if (!gone) return;
  }
}

/** What was brought back is the state to compare with from now on. */
async function keepApplied(folder: string, session: SessionId, { files }: Applied): Promise<void> {
  const paths = copyPaths(folder, session);
  const base = await readBase(paths.base);
  if (!base || files.length === 0) return;
  for (const { path } of files) {
    const entry = await entryAt(folder, path);
    // The copy may have been written to again by now: without a stamp it is read the next time.
    if (entry && entry !== 'other') base.files[path] = { ...entry, stamp: '' };
    else delete base.files[path];
  }
  await writeBase(paths.base, base);
}
