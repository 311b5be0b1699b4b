import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { SandboxId } from '../protocol/ids.ts';
import { type GuardedPath, guardRails, identities, makeStandIns, removeStandIns } from './guard-rails.ts';

/** ms. No provisioning takes longer. */
const OLD_MS = 60 * 60_000;

const Note = z.object({
  sandbox: SandboxId,
  folder: z.string(),
  /** What the mounts were made over, by path. */
  identities: z.record(z.string(), z.string()),
  guarded: z.array(z.object({ path: z.string(), how: z.enum(['hidden', 'read_only', 'anchor']) })),
  standIns: z.array(z.string()),
  /** Its container was stopped because nobody used it. */
  resting: z.boolean(),
});
type Note = z.infer<typeof Note>;

/** What each container's guard rails were made over, kept in a folder of ours: the next window has to know it too. */
export class GuardNotes {
  readonly #folder: string;
  /** It is asked for twice for each call. */
  #last: { file: string; version: string; note: Note } | undefined;

  constructor(cacheFolder: string) {
    this.#folder = join(cacheFolder, 'guards');
  }

  /** Makes what the mounts need and notes it, before the container is made. Throws `SandboxUnavailable`. */
  prepare(sandbox: SandboxId, folder: string): GuardedPath[] {
    const { guarded, standIns } = guardRails(folder);
    // One that another sandbox of this folder made is taken over, so that the last one removes it.
    const shared = this.#all()
      .filter((note) => note.folder === folder)
      .flatMap((note) => note.standIns);
    const note: Note = {
      sandbox,
      folder,
      guarded,
      identities: {},
      resting: false,
      standIns: [...new Set([...standIns, ...shared.filter((path) => guarded.some((one) => one.path === path))])],
    };
    // Noted first: what is made after a crash in between is found by its note.
    this.#write(note);
    makeStandIns(folder, standIns);
    this.#write({ ...note, identities: identities(folder, guarded) });
    return guarded;
  }

  /** For a sandbox that has a copy of the folder: nothing in it is run here, so nothing is mounted over. */
  prepareCopy(sandbox: SandboxId, folder: string): void {
    this.#write({ sandbox, folder, guarded: [], identities: {}, resting: false, standIns: [] });
  }

  /** Whether the mounts of a container that runs since then still cover what they were made over. */
  hold(sandbox: SandboxId): boolean {
    const note = this.#read(sandbox);
    if (!note) return false;
    const now = identities(note.folder, note.guarded);
    return note.guarded.every(({ path }) => now[path] === note.identities[path]);
  }

  /**
   * Removes what no mount can keep away, because it must not exist at all: a `commondir` in a repository, with which
   * git takes its configuration from wherever that file says. Returns what was removed.
   */
  sweep(sandbox: SandboxId): string[] {
    const note = this.#read(sandbox);
    if (!note) return [];
    const repositories = note.guarded.filter(({ path, how }) => how === 'anchor' && /(^|\/)\.git$/.test(path));
    return repositories
      .map(({ path }) => `${path}/commondir`)
      .filter((path) => !note.guarded.some((one) => one.path === path))
      .filter((path) => {
        const file = join(note.folder, path);
        if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return false;
        rmSync(file, { recursive: true, force: true });
        return true;
      });
  }

  /**
   * For a container that is about to be started again, which makes its mounts anew: false if it would need others than
   * it was made with, so that only a new container can be guarded.
   */
  renew(sandbox: SandboxId): boolean {
    const note = this.#read(sandbox);
    if (!note) return false;
    makeStandIns(
      note.folder,
      guardRails(note.folder).standIns.filter((path) => note.guarded.some((one) => one.path === path)),
    );
    const { guarded } = guardRails(note.folder);
    // More there may be: repositories made inside since then, which were never any safer than what made them.
    const still = (one: GuardedPath) => guarded.some(({ path, how }) => path === one.path && how === one.how);
    if (!note.guarded.every(still)) return false;
    this.#write({ ...note, identities: identities(note.folder, note.guarded) });
    return true;
  }

  /** The sandbox is gone: so are its stand-ins, unless another sandbox of the folder needs them. Never throws. */
  forget(sandbox: SandboxId): void {
    const note = this.#read(sandbox);
    rmSync(this.#fileOf(sandbox), { force: true });
    if (!note) return;
    const needed = new Set(
      this.#all()
        .filter((other) => other.folder === note.folder)
        .flatMap((other) => other.standIns),
    );
    removeStandIns(
      note.folder,
      note.standIns.filter((path) => !needed.has(path)),
    );
  }

  /** What is guarded in a sandbox's container; undefined if it was not made to the end. */
  guarded(sandbox: SandboxId): GuardedPath[] | undefined {
    return this.#read(sandbox)?.guarded;
  }

  resting(sandbox: SandboxId): boolean {
    return this.#read(sandbox)?.resting ?? false;
  }

  rest(sandbox: SandboxId, resting: boolean): void {
    const note = this.#read(sandbox);
    if (note) this.#write({ ...note, resting });
  }

  /** Says to other windows, which share these notes, that this one uses the sandbox. */
  touch(sandbox: SandboxId): void {
    try {
      utimesSync(this.#fileOf(sandbox), new Date(), new Date());
    } catch {
      // It has just been removed.
    }
  }

  /** ms since some window used the sandbox, or made it. */
  unusedMs(sandbox: SandboxId): number {
    const touched = statSync(this.#fileOf(sandbox), { throwIfNoEntry: false })?.mtimeMs;
    return touched === undefined ? Number.POSITIVE_INFINITY : Date.now() - touched;
  }

  /** Sandboxes whose note is old enough that a container must have come of it, if ever one did. */
  old(): SandboxId[] {
    return this.#all()
      .map((note) => note.sandbox)
      .filter((id) => this.unusedMs(id) > OLD_MS);
  }

  #fileOf(sandbox: string): string {
    return join(this.#folder, `${sandbox}.json`);
  }

  #all(): Note[] {
    let names: string[];
    try {
      names = readdirSync(this.#folder);
    } catch {
      return [];
    }
    return names.flatMap((name) => this.#read(name.replace(/\.json$/, '')) ?? []);
  }

  #read(sandbox: string): Note | undefined {
    const file = this.#fileOf(sandbox);
    try {
      const { ino, size, birthtimeNs } = statSync(file, { bigint: true });
      // Each note is a file of its own, whoever writes it.
      const version = `${ino} ${size} ${birthtimeNs}`;
      const last = this.#last;
      if (last?.file === file && last.version === version) return last.note;
      const note = Note.parse(JSON.parse(readFileSync(file, 'utf8')));
      this.#last = { file, version, note };
      return note;
    } catch {
      // Not a note, or half written by a process that died: its container never got ready.
      return undefined;
    }
  }

  #write(note: Note): void {
    mkdirSync(this.#folder, { recursive: true });
    const file = this.#fileOf(note.sandbox);
    writeFileSync(`${file}.new`, JSON.stringify(note));
    renameSync(`${file}.new`, file);
  }
}
