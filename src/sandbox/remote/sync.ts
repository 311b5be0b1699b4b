import { createReadStream, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { lstat, readFile, readlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Headers, Pack } from 'tar-stream';
import { z } from 'zod';
import { messageOf } from '../../protocol/errors.ts';
import { mint } from '../../protocol/ids.ts';
import type { GuardedPath } from '../guard-rails.ts';
import { type Sandbox, SandboxLost } from '../sandbox.ts';
import { difference, type Entry, entriesFrom, entriesHere, entryHere, LIST_INSIDE } from './entries.ts';
import { leadsOut, putFile, putFolder, putLink, refusal, removeOne } from './host-files.ts';

const RUN_MS = 120_000;
/** A listing of the whole workspace; what is longer is no workspace. */
const LISTING_MAX = 64 << 20;
/** So many files are fetched one by one; more come as one archive of all. */
const ONE_BY_ONE = 40;

const Known = z.object({
  kind: z.enum(['file', 'folder', 'link']),
  mode: z.number(),
  stamp: z.string(),
  looks: z.string(),
});
const State = z.object({
  here: z.array(z.tuple([z.string(), Known])),
  inside: z.array(z.tuple([z.string(), Known])),
});

/** The archive side of a container: whole trees in and out, without a program inside. */
export interface Archives {
  put(target: string, archive: Readable): Promise<void>;
  get(path: string): Promise<Readable>;
}

export interface SyncOptions {
  /** Absolute, on this machine. */
  folder: string;
  /** Where the same files are inside. */
  target: string;
  guarded: readonly GuardedPath[];
  archives: Archives;
  /** Where what both sides were is kept, for whoever goes on with the copy. */
  stateFile: string;
  /** Something a person should know: what was not brought back, and why. */
  tell(message: string): void;
}

/**
 * Keeps a folder of this machine and its copy in a sandbox elsewhere alike: `up` before a call, `down` after it.
 * Where both sides changed a file, the person's change counts, and that is told. One direction at a time.
 */
export class Sync {
  readonly #options: SyncOptions;
  /** Both sides as they were when they were last alike. */
  #here = new Map<string, Entry>();
  #inside = new Map<string, Entry>();
  #turn: Promise<unknown> = Promise.resolve();
  readonly #told = new Set<string>();

  constructor(options: SyncOptions) {
    this.#options = options;
    try {
      const kept = State.parse(JSON.parse(readFileSync(options.stateFile, 'utf8')));
      this.#here = new Map(kept.here);
      this.#inside = new Map(kept.inside);
    } catch {
      // It is new, or what was known is lost: then what is here counts.
    }
  }

  /** Fills the copy for the first time, before anything runs in it. */
  fill(): Promise<void> {
    return this.#inTurn(async () => {
      this.#here = await entriesHere(this.#options.folder);
      await this.#send([...this.#here.keys()].sort());
    });
  }

  /** Brings what the person changed here to the copy. */
  up(sandbox: Sandbox): Promise<void> {
    return this.#inTurn(async () => {
      const now = await entriesHere(this.#options.folder);
      const { changed, gone } = difference(this.#here, now);
      if (changed.length > 0) await this.#send(changed);
      if (gone.length > 0) await this.#removeInside(sandbox, gone);
      const first = this.#inside.size === 0 && now.size > 0;
      if (changed.length === 0 && gone.length === 0 && !first) return;
      this.#here = now;
      const inside = await this.#list(sandbox);
      // What ran in it before the first call, such as the commands that set it up, is to be brought back as well.
      this.#inside = first ? new Map([...inside].filter(([path, entry]) => alike(now.get(path), entry))) : inside;
    });
  }

  /** Brings what was changed in the copy here. */
  down(sandbox: Sandbox): Promise<void> {
    return this.#inTurn(async () => {
      const now = await this.#list(sandbox);
      const { changed, gone } = difference(this.#inside, now);
      const wanted = new Map<string, Entry>();
      for (const path of changed) {
        const entry = now.get(path);
        if (entry && (await this.#mayChange(path, entry.kind))) wanted.set(path, entry);
      }
      await this.#fetch(wanted);
      for (const path of gone.reverse())
        if (await this.#mayChange(path, this.#inside.get(path)?.kind ?? 'file')) {
          await removeOne(this.#options.folder, path);
          await this.#noteHere(path);
        }
      if (changed.length > 0 || gone.length > 0) this.#inside = now;
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const kept = async () => {
      const before = [this.#here, this.#inside];
      const result = await work();
      if (this.#here !== before[0] || this.#inside !== before[1]) this.#keep();
      return result;
    };
    const turn = this.#turn.then(kept, kept).catch((error: unknown) => {
      throw error instanceof SandboxLost ? error : new SandboxLost(unlike(messageOf(error)), { cause: error });
    });
    this.#turn = turn.catch(() => {});
    return turn;
  }

  #keep(): void {
    const { stateFile } = this.#options;
    mkdirSync(dirname(stateFile), { recursive: true });
    const state: z.infer<typeof State> = { here: [...this.#here], inside: [...this.#inside] };
    writeFileSync(`${stateFile}.new`, JSON.stringify(state));
    renameSync(`${stateFile}.new`, stateFile);
  }

  /** Whether a change inside may be made here, too; if not, why is told once. */
  async #mayChange(path: string, kind: Entry['kind']): Promise<boolean> {
    const { folder, guarded } = this.#options;
    const refused =
      refusal(path, kind, guarded) ?? ((await leadsOut(folder, path)) ? 'a link is in its way' : undefined);
    if (refused) {
      this.#tellOnce(`${path} was changed in the sandbox and not brought back: ${refused}.`);
      return false;
    }
    const before = this.#here.get(path);
    const now = await entryHere(folder, path);
    const untouched = before?.kind === now?.kind && before?.stamp === now?.stamp;
    if (!untouched && !(kind === 'folder' && now?.kind === 'folder'))
      this.#tellOnce(`${path} was changed both here and in the sandbox; what is here was kept.`, now?.stamp);
    return untouched || (kind === 'folder' && now?.kind === 'folder');
  }

  #tellOnce(message: string, of = ''): void {
    const key = `${message} ${of}`;
    if (!this.#told.has(key)) this.#options.tell(message);
    this.#told.add(key);
  }

  async #noteHere(path: string): Promise<void> {
    const entry = await entryHere(this.#options.folder, path);
    if (entry) this.#here.set(path, entry);
    else this.#here.delete(path);
  }

  async #send(paths: readonly string[]): Promise<void> {
    const { folder, target, archives } = this.#options;
    const { pack } = await import('tar-stream');
    const archive = pack();
    const { uid, gid } = await lstat(folder);
    const filling = fill(archive, folder, paths, { uid, gid });
    await Promise.all([archives.put(target, archive), filling.catch((error) => archive.destroy(error))]);
    await filling;
  }

  async #fetch(wanted: ReadonlyMap<string, Entry>): Promise<void> {
    const { folder, target, archives } = this.#options;
    for (const [path, { kind, mode }] of wanted)
      if (kind === 'folder') {
        await putFolder(folder, path, mode);
        await this.#noteHere(path);
      }
    const files = new Set([...wanted].filter(([, { kind }]) => kind !== 'folder').map(([path]) => path));
    if (files.size === 0) return;
    if (files.size > ONE_BY_ONE) return await this.#take(await archives.get(target), (name) => afterFirst(name), files);
    for (const path of files) {
      const archive = await archives.get(`${target}/${path}`).catch(() => undefined);
      // One that is gone again is told by the next listing.
      if (archive) await this.#take(archive, () => path, files);
    }
  }

  /** Takes the wanted files out of an archive, whose names `pathOf` translates. */
  async #take(archive: Readable, pathOf: (name: string) => string, wanted: ReadonlySet<string>): Promise<void> {
    const { extract } = await import('tar-stream');
    const entries = extract();
    const done = new Promise<void>((resolve, reject) => {
      entries.on('entry', (header: Headers, stream: Readable, next: (error?: unknown) => void) => {
        this.#takeOne(header, pathOf(header.name), stream, wanted).then(() => next(), next);
      });
      entries.on('finish', resolve);
      entries.on('error', reject);
      archive.on('error', reject);
    });
    archive.pipe(entries);
    await done;
  }

  async #takeOne(header: Headers, path: string, stream: Readable, wanted: ReadonlySet<string>): Promise<void> {
    const { folder } = this.#options;
    if (!wanted.has(path)) {
      stream.resume();
      return;
    }
    if (header.type === 'symlink' && header.linkname) await putLink(folder, path, header.linkname);
    else if (header.type === 'file' || header.type === 'contiguous-file')
      await putFile(folder, path, (header.mode ?? 0o644) & 0o777, stream);
    else if (header.type === 'link') await this.#takeHardLink(path, stream);
    stream.resume();
    await this.#noteHere(path);
  }

  /** A second name of a file comes without its content in an archive of many: it is asked for by itself. */
  async #takeHardLink(path: string, stream: Readable): Promise<void> {
    stream.resume();
    const { target, archives } = this.#options;
    await this.#take(await archives.get(`${target}/${path}`), () => path, new Set([path]));
  }

  async #removeInside(sandbox: Sandbox, paths: readonly string[]): Promise<void> {
    const script =
      'cd "$1" && while IFS= read -r p; do if [ -d "$p" ] && [ ! -L "$p" ]; then rmdir "$p"; else rm -f "$p"; fi; done; true';
    const stdin = new TextEncoder().encode(
      [...paths]
        .reverse()
        .map((path) => `./${path}\n`)
        .join(''),
    );
    await this.#run(sandbox, script, stdin);
  }

  async #list(sandbox: Sandbox): Promise<Map<string, Entry>> {
    return entriesFrom(await this.#run(sandbox, LIST_INSIDE));
  }

  async #run(sandbox: Sandbox, script: string, stdin?: Uint8Array): Promise<string> {
    const result = await sandbox.run({
      executionId: mint.execution(),
      argv: ['sh', '-c', script, 'sync', this.#options.target],
      cwd: '/',
      timeoutMs: RUN_MS,
      signal: AbortSignal.timeout(RUN_MS * 2),
      maxBytes: LISTING_MAX,
      ...(stdin ? { stdin } : {}),
    });
    if (result.exitCode !== 0 || result.cutBytes > 0)
      throw new Error(new TextDecoder().decode(result.stderr).trim() || `the listing ended with ${result.exitCode}`);
    return new TextDecoder().decode(result.stdout);
  }
}

const alike = (here: Entry | undefined, inside: Entry): boolean =>
  here?.kind === inside.kind && here.looks === inside.looks;

const unlike = (why: string): string =>
  `The files here and in the sandbox on the other machine could not be kept alike (${why}); what the call did may not be back yet, the next call tries again.`;

/** In an archive of a folder all names begin with the folder's own. */
const afterFirst = (name: string): string => name.replace(/^[^/]*\//, '').replace(/\/$/, '');

async function fill(
  archive: Pack,
  folder: string,
  paths: readonly string[],
  owner: { uid: number; gid: number },
): Promise<void> {
  for (const path of paths) {
    const stats = await lstat(join(folder, path)).catch(() => undefined);
    if (!stats) continue;
    const common = { name: path, mode: stats.mode & 0o777, mtime: stats.mtime, ...owner };
    if (stats.isDirectory()) archive.entry({ ...common, type: 'directory' });
    else if (stats.isSymbolicLink())
      archive.entry({ ...common, type: 'symlink', linkname: await readlink(join(folder, path)) });
    else if (stats.isFile()) await addFile(archive, common, join(folder, path), stats.size);
  }
  archive.finalize();
}

/** Larger files are read while they are sent; smaller ones before, so that one that grows meanwhile breaks nothing. */
const AT_ONCE = 4 << 20;
/** Bytes that may wait to be sent. */
const WAITING_MAX = 16 << 20;

async function addFile(archive: Pack, header: Headers, file: string, size: number): Promise<void> {
  if (size > AT_ONCE) {
    const sent = new Promise<void>((resolve, reject) => {
      const sink = archive.entry({ ...header, size }, (error) => (error ? reject(error) : resolve()));
      createReadStream(file, { end: size - 1 })
        .on('error', reject)
        .pipe(sink);
    });
    return await sent;
  }
  const content = await readFile(file).catch(() => undefined);
  if (!content) return;
  archive.entry(header, content);
  while (archive.readableLength > WAITING_MAX && !archive.destroyed) await sleep(5);
}
