import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';

/** On a Mac without the developer tools, this program is only a stand-in that opens an installer. */
const MAC_STAND_IN = '/usr/bin/git';

/**
 * Absolute path of the host's git, or null if there is none. It is looked for on the PATH by its absolute folders
 * alone: a `git` that lies in the workspace must never be found.
 */
export async function findGit(env: NodeJS.ProcessEnv = process.env): Promise<string | null> {
  const name = process.platform === 'win32' ? 'git.exe' : 'git';
  for (const folder of (env.PATH ?? env.Path ?? '').split(delimiter)) {
    if (!isAbsolute(folder)) continue;
    const path = join(folder, name);
    if (!(await isProgram(path))) continue;
    if (process.platform === 'darwin' && path === MAC_STAND_IN && !(await hasDeveloperTools())) continue;
    return path;
  }
  return null;
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

const hasDeveloperTools = (): Promise<boolean> =>
  new Promise((resolve) => {
    execFile('/usr/bin/xcode-select', ['-p'], { timeout: 5000 }, (error) => resolve(error === null));
  });
