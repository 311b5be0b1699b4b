import createIgnore, { type Ignore } from 'ignore';

/** The rules of the ignore files of a walk, as git understands them: the deepest file that says something decides. */
export class IgnoreRules {
  /** By folder, relative to the workspace; '' is the workspace itself. */
  readonly #byFolder = new Map<string, Ignore>();

  /** Adds one file's rules. `path`: of the file, relative to the workspace. Later files of a folder win. */
  add(path: string, content: string): void {
    const folder = path === '.git/info/exclude' ? '' : parentOf(path);
    const rules = this.#byFolder.get(folder) ?? createIgnore({ ignorecase: false });
    this.#byFolder.set(folder, rules.add(content));
  }

  /** Whether the rules leave out `path`, relative to the workspace. What lies in an ignored folder is not asked about. */
  ignores(path: string, isFolder: boolean): boolean {
    for (let folder = parentOf(path); ; folder = parentOf(folder)) {
      const rules = this.#byFolder.get(folder);
      const inside = folder === '' ? path : path.slice(folder.length + 1);
      const verdict = rules?.test(isFolder ? `${inside}/` : inside);
      if (verdict?.ignored) return true;
      if (verdict?.unignored && isFolder) this.#pardon(path, folder);
      if (verdict?.unignored || folder === '') return false;
    }
  }

  /** A folder that a deeper file takes back in: what files above `by` say of it must not pass down to what is in it. */
  #pardon(path: string, by: string): void {
    for (let folder = by; folder !== ''; ) {
      folder = parentOf(folder);
      const rules = this.#byFolder.get(folder);
      const inside = folder === '' ? path : path.slice(folder.length + 1);
      if (rules?.test(`${inside}/`).ignored) rules.add(`!/${inside.replaceAll(/[\\*?[\]! #]/g, '\\$&')}/`);
    }
  }

  /** Whether `path` itself, a folder, or one that it lies in is left out. */
  ignoresWithin(path: string): boolean {
    const parts = path.split('/');
    return parts.some((_, i) => this.ignores(parts.slice(0, i + 1).join('/'), true));
  }
}

const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')));
