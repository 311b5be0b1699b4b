import { Refused } from './files.ts';
import { failed } from './outcomes.ts';
import { sha256 } from './stored-file.ts';
import type { Acting } from './tool.ts';

/**
 * Throws `Refused` where somebody else's work would be lost: the file is not what this thread last saw of it, or it
 * stands in the person's editor with changes that are not saved. `realPath` is relative to the workspace.
 */
export async function assertUnchanged(
  context: Acting,
  path: string,
  now: { realPath: string; bytes: Uint8Array },
): Promise<void> {
  const seen = context.seen(now.realPath);
  if (seen !== undefined && seen !== sha256(now.bytes))
    throw new Refused(
      failed(
        `${path} was changed since you last read or wrote it, by a person or by a command, so nothing was done. Read it again, then decide anew.`,
        { realPath: now.realPath },
      ),
      'changed',
    );
  await assertSaved(context, path, now.realPath);
}

/** Throws `Refused` if the file stands in the person's editor with changes that are not saved. */
export async function assertSaved(context: Acting, path: string, realPath: string): Promise<void> {
  if (!(await context.desk.unsaved(realPath))) return;
  throw new Refused(
    failed(
      `${path} is open in the person's editor with changes that are not saved, so nothing was done. Ask them to save or close it, then read it again.`,
      { realPath },
    ),
    'unsaved',
  );
}
