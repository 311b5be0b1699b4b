import { createHash, randomUUID } from 'node:crypto';
import { lstat, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { deflate } from 'node:zlib';
import { DroverError } from '../../protocol/errors.ts';
import type { SessionId } from '../../protocol/ids.ts';
import { findGit } from './find-git.ts';
import { Git, type GitPlace, type GitRun } from './git.ts';

export class GitMissing extends DroverError {
  constructor() {
    super(
      'tool',
      'git was not found on this machine, so no checkpoints of the files are kept and they can’t be put back later; install git to have them. The session goes on without.',
    );
  }
}

export interface RepositoryOptions {
  /** Absolute path of the `.drover` folder. */
  root: string;
  /** A folder outside the workspace that only the user can write; made if missing. */
  privateFolder: string;
  /** Where git is looked for. Default: this process's own. */
  env?: NodeJS.ProcessEnv;
}

/** Loose objects of one of the 256 folders from which on they are packed: about 6400 in all. */
const LOOSE_IN_ONE = 25;
/** What no session leads to any more is kept this long: another window may be about to name it. */
const GRACE = '1.day.ago';
const PACK_MS = 10 * 60_000;
/** An index that nobody has written for so long, in ms, is removed. */
const INDEX_MS = 7 * 24 * 60 * 60_000;

/**
 * The repository that keeps the checkpoints of one workspace folder. Objects, refs and indexes lie in
 * `.drover/checkpoints`; the configuration that git obeys lies in a private folder, because whoever could write that
 * could make git run programs on the host.
 */
export class Repository {
  readonly #root: string;
  readonly #home: string;
  readonly #gitDir: string;
  readonly #env: NodeJS.ProcessEnv | undefined;
  #opening: Promise<Git> | undefined;

  constructor({ root, privateFolder, env }: RepositoryOptions) {
    this.#root = root;
    this.#home = join(root, 'checkpoints');
    this.#gitDir = join(privateFolder, createHash('sha256').update(root).digest('hex').slice(0, 16));
    this.#env = env;
  }

  /** The folder of the indexes: what git knows of a work folder's files, one file per process that took checkpoints. */
  get indexes(): string {
    return join(this.#home, 'index');
  }

  /** Runs a git command on the repository. Throws `GitMissing`, `GitFailed`, or the system's error. */
  async run(
    place: Pick<GitPlace, 'index' | 'workTree'>,
    args: readonly string[],
    options: GitRun = {},
  ): Promise<Buffer> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    const git = await this.#opening;
    return git.run({ gitDir: this.#gitDir, objects: join(this.#home, 'objects'), ...place }, args, options);
  }

  /** Stores an object as git does, which for a small one is not worth a process. Returns its id. */
  async writeObject(type: 'commit', body: Uint8Array): Promise<string> {
    const bytes = Buffer.concat([Buffer.from(`${type} ${body.length}\0`), body]);
    const id = createHash('sha1').update(bytes).digest('hex');
    const folder = join(this.#home, 'objects', id.slice(0, 2));
    await mkdir(folder, { recursive: true });
    // So git names its own drafts: what a kill leaves of one is found and removed by `prune`.
    const draft = join(folder, `tmp_obj_${randomUUID()}`);
    await writeWhole(join(folder, id.slice(2)), await deflated(bytes), { draft, mode: 0o444 });
    return id;
  }

  /** Writes the patterns of what is left out where git finds them, and returns the file's path. */
  async writeExcludes(text: string): Promise<string> {
    const path = join(this.#gitDir, `exclude-${createHash('sha256').update(text).digest('hex').slice(0, 16)}`);
    if ((await readIfThere(path)) !== text) await writeWhole(path, text);
    return path;
  }

  /** Lets a session's checkpoints up to this one be kept. */
  async keep(session: SessionId, commit: string): Promise<void> {
    await writeWhole(this.#ref(session), `${commit}\n`);
  }

  /** Lets go of a deleted session's checkpoints: what only it led to is removed by a later `tidy`. */
  async forget(session: SessionId): Promise<void> {
    await rm(this.#ref(session), { force: true });
    for (const name of await namesIn(this.indexes)) {
      if (name.startsWith(`${session}.`)) await rm(join(this.indexes, name), { force: true });
    }
  }

  /**
   * Packs what has gathered and removes what no session leads to, when there is enough of it to be worth while.
   * Sessions whose folder is gone are let go of first. At most ten minutes, behind everything else.
   */
  async tidy(options: { always?: boolean; grace?: string } = {}): Promise<void> {
    const there = new Set(await namesIn(join(this.#root, 'sessions')));
    const gone = (await this.#sessionsKept()).filter((session) => !there.has(session));
    for (const session of gone) await this.forget(session);
    await this.#dropOldIndexes();
    const loose = (await namesIn(join(this.#home, 'objects', '17'))).length;
    if (!options.always && gone.length === 0 && loose < LOOSE_IN_ONE) return;
    const grace = options.grace ?? GRACE;
    const run: GitRun = { timeoutMs: PACK_MS, background: true };
    await this.run({}, ['repack', '-A', '-d', '-l', '-q', `--unpack-unreachable=${grace}`], run);
    await this.run({}, ['prune', `--expire=${grace}`], run);
  }

  /** An index only saves time: one that is gone is made anew. */
  async #dropOldIndexes(): Promise<void> {
    for (const name of await namesIn(this.indexes)) {
      const path = join(this.indexes, name);
      const found = await stat(path).catch(() => null);
      if (found && !name.endsWith('.settled') && Date.now() - found.mtimeMs > INDEX_MS) await rm(path, { force: true });
    }
  }

  async #sessionsKept(): Promise<SessionId[]> {
    const names = await namesIn(join(this.#home, 'refs', 'drover'));
    return names.filter((name) => !name.endsWith('.tmp')).map((name) => name as SessionId);
  }

  #ref(session: SessionId): string {
    return join(this.#home, 'refs', 'drover', session);
  }

  async #open(): Promise<Git> {
    const program = await findGit(this.#env);
    if (program === null) throw new GitMissing();
    const refs = join(this.#home, 'refs');
    for (const folder of [join(refs, 'drover'), join(this.#home, 'objects', 'pack'), this.indexes]) {
      await mkdir(folder, { recursive: true });
    }
    await mkdir(join(this.#gitDir, 'info'), { recursive: true, mode: 0o700 });
    for (const [name, text] of Object.entries(PRIVATE)) {
      const path = join(this.#gitDir, name);
      if ((await readIfThere(path)) !== text) await writeWhole(path, text);
    }
    await linkFolder(refs, join(this.#gitDir, 'refs'));
    return new Git(program);
  }
}

const deflated = promisify<Uint8Array, Buffer>(deflate);

const onWindows = process.platform === 'win32';
const foldsCase = onWindows || process.platform === 'darwin';
const nowhere = onWindows ? 'NUL' : '/dev/null';

/** The private folder's files. The attributes outweigh those of the workspace: bytes are kept as they are, nothing is run. */
const PRIVATE: Readonly<Record<string, string>> = {
  HEAD: 'ref: refs/heads/none\n',
  'info/attributes': '* -text -filter -ident !working-tree-encoding !eol -crlf -diff -merge\n',
  'info/exclude': '',
  config: `[core]
	repositoryformatversion = 0
	bare = false
	filemode = ${!onWindows}
	symlinks = ${!onWindows}
	ignorecase = ${foldsCase}
	precomposeunicode = false
	protectNTFS = ${onWindows}
	protectHFS = ${process.platform === 'darwin'}
	longpaths = true
	autocrlf = false
	safecrlf = false
	fsmonitor = false
	untrackedcache = false
	hooksPath = ${nowhere}
	attributesFile = ${nowhere}
	excludesFile = ${nowhere}
	logAllRefUpdates = false
	looseCompression = 1
[index]
	version = 4
	skipHash = true
[gc]
	auto = 0
[maintenance]
	auto = false
[pack]
	threads = 1
	windowMemory = 64m
[repack]
	writeBitmaps = false
[submodule]
	recurse = false
`,
};

/** Makes `path` a way to `target`; a former one that leads elsewhere is replaced. */
async function linkFolder(target: string, path: string): Promise<void> {
  const found = await lstat(path).catch(() => null);
  if (found) {
    const [there, wanted] = await Promise.all([stat(path).catch(() => null), stat(target)]);
    if (there?.ino === wanted.ino && there.dev === wanted.dev) return;
    await rm(path, { recursive: true, force: true });
  }
  await symlink(target, path, onWindows ? 'junction' : 'dir').catch(async (error: unknown) => {
    // Another window may have made it at the same moment.
    if ((await stat(path).catch(() => null)) === null) throw error;
  });
}

async function writeWhole(
  path: string,
  content: string | Uint8Array,
  { draft, mode } = { draft: `${path}.${randomUUID()}.tmp`, mode: 0o600 },
): Promise<void> {
  try {
    await writeFile(draft, content, { mode });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    return undefined;
  }
}

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);
