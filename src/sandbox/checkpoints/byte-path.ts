/**
 * A path inside a work folder, `/` between its parts, as the bytes it has on the disk: one character per byte. A file's
 * name need not be UTF-8, and two names that look alike need not be the same.
 */
export type BytePath = string;

export const toBytes = (path: BytePath): Buffer => Buffer.from(path, 'latin1');

/** The paths of a list that ends each with a zero byte. */
export function splitPaths(list: Buffer): BytePath[] {
  const paths = list.toString('latin1').split('\0');
  paths.pop();
  return paths;
}

/** The list of paths that git reads with `-z`. */
export const joinPaths = (paths: readonly BytePath[]): Buffer =>
  Buffer.from(paths.map((path) => `${path}\0`).join(''), 'latin1');

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** For people and the log: the text it is in UTF-8, or else as git quotes it, in double quotes with octal bytes. */
export function shown(path: BytePath): string {
  try {
    return utf8.decode(toBytes(path));
  } catch {
    const escaped = path.replace(/[\\"]|[^ -~]/g, (byte) =>
      byte === '\\' || byte === '"' ? `\\${byte}` : `\\${byte.charCodeAt(0).toString(8).padStart(3, '0')}`,
    );
    return `"${escaped}"`;
  }
}
