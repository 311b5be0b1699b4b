import { DroverError, messageOf } from '../protocol/errors.ts';
import { AppendFailed } from './log.ts';
import { codeOf } from './paths.ts';

const CAUSES: Record<string, string> = {
  ENOSPC: 'the disk is full; free some space, then go on with the session',
  EDQUOT: 'your disk quota is used up; free some space, then go on with the session',
  EFBIG: 'the file would be larger than this file system allows',
  EIO: 'the disk reported an error; check the disk before you go on',
  EROFS: 'the folder is on a read-only file system; open it from a writable place',
  EACCES: 'this user may not write there; check the permissions of the .drover folder',
  EPERM: 'this user may not write there; check the permissions of the .drover folder',
  ENOENT: 'its folder is gone; was it deleted or moved while the session was open?',
};

/** Turns what went wrong on writing into one sentence. An error that is one already stays as it is. */
export function appendFailure(error: unknown): DroverError {
  if (error instanceof DroverError) return error;
  const cause = CAUSES[codeOf(error) ?? ''] ?? messageOf(error);
  return new AppendFailed(`The session could not be saved: ${cause}. Nothing that was saved before is lost.`, {
    cause: error,
  });
}
