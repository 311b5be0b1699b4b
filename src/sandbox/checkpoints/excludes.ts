import { readFile, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';

/** Made from other files, and large: kept out unless a `.gitignore` of the workspace takes them in with a `!` line. */
const MADE = ['node_modules/', 'bower_components/', '.venv/', 'venv/', '__pycache__/', '.tox/', '.gradle/'];
/** Longer lists of patterns are not read. */
const MAX_BYTES = 256 * 1024;
/** How far above the work folder a repository's top is looked for. */
const MAX_UP = 20;

/**
 * Patterns of what is no part of a checkpoint, beside the `.gitignore` files inside the work folder, which git reads
 * itself and which outweigh these: what is made from other files; the private list of the user's repository; and the
 * `.gitignore` files above, where the work folder lies inside a repository.
 */
export async function excludes(workFolder: string): Promise<string> {
  const lines = [...MADE];
  let folder = workFolder;
  const above: string[][] = [];
  for (let up = 0; up <= MAX_UP; up += 1) {
    if (up > 0) above.unshift(rebased(await read(join(folder, '.gitignore')), relative(folder, workFolder)));
    if (await exists(join(folder, '.git'))) {
      const own = rebased(await read(join(folder, '.git', 'info', 'exclude')), relative(folder, workFolder));
      return [...lines, ...own, ...above.flat(), ''].join('\n');
    }
    const parent = dirname(folder);
    if (parent === folder) break;
    folder = parent;
  }
  // No repository: what lies above has nothing to say.
  return [...lines, ''].join('\n');
}

/** Patterns of a folder as they read in one below it; those that are about other places are left out. */
function rebased(text: string, below: string): string[] {
  const lines = text.split(/\r?\n/).filter((line) => line !== '' && !line.startsWith('#'));
  if (below === '') return lines;
  const way = below.split(sep).join('/');
  return lines.flatMap((line) => {
    const not = line.startsWith('!') ? '!' : '';
    const pattern = line.slice(not.length);
    // Without a slash inside, it is about that name at any depth.
    if (!pattern.slice(0, -1).includes('/')) return [line];
    const anchored = pattern.replace(/^\//, '');
    if (anchored.startsWith('**/')) return [line];
    return anchored.startsWith(`${way}/`) ? [`${not}/${anchored.slice(way.length + 1)}`] : [];
  });
}

async function read(path: string): Promise<string> {
  try {
    const found = await stat(path);
    return found.isFile() && found.size <= MAX_BYTES ? await readFile(path, 'utf8') : '';
  } catch {
    return '';
  }
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
