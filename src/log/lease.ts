import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { link, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { type Mark, markOf } from './lease-mark.ts';
import { LeaseHeld, type LeaseHolder } from './log.ts';
import { codeOf } from './paths.ts';
import type { Head } from './serialize.ts';

/*
 * A lease is a file that says who may write, and a row of claims beside it that say who was first.
 *
 * Fence n belongs to whoever made the file `lease.n`, and only one process can: it is linked to its name, content and
 * all, if the name is free. So two processes that race for a dead session can't both win, and no lock has to be broken,
 * which is where such schemes go wrong. `lease` itself is a convenience: the content of the highest claim with a fresh
 * heartbeat, replaced atomically. Where the two differ, the higher fence is right, and its owner writes `lease` again.
 */

/** A heartbeat older than this means that the holder is gone. */
export const LEASE_MS = 15_000;
/** Each failed attempt means that another process has got the lease meanwhile, or is just making its claim. */
const MAX_ATTEMPTS = 20;
/** Where a claim can't appear whole, it gets its content in much less than this. */
const MAKING_MS = 10;

export interface Holder {
  pid: number;
  host: string;
}

/** The last record that its holder knew to be on the disk: a log that ends before it was cut off. */
const KeptHead = z.object({ seq: z.number().int(), hash: z.string() }).optional();

const Holding = z.object({
  pid: z.number(),
  host: z.string(),
  fence: z.number().int(),
  /** Where `pid` means something: two containers, or Windows and its Linux, can share a host name. */
  space: z.string(),
  /** Who of this process: a pid is used again one day. */
  token: z.string(),
  /** RFC 3339. */
  heartbeat: z.string(),
  head: KeptHead,
});
type Holding = z.infer<typeof Holding>;
/** Given back: the fence stays, so that the next one is higher. */
const Released = z.object({ fence: z.number().int(), head: KeptHead });
const Content = z.union([Holding, Released]);

/** What the folder says: the highest fence, and whose it is; null if it was given back or can't be read. */
interface Standing {
  fence: number;
  content: Holding | null;
  /** Nobody can say whose it is, but it was made a moment ago. */
  beingMade: boolean;
}

export interface LeaseOptions {
  holder?: Holder | undefined;
  now?: (() => Date) | undefined;
  leaseMs?: number | undefined;
}

/** Tokens of the leases this process holds. */
const held = new Set<string>();

/** Reads and takes the lease that the file `path` stands for. */
export class LeaseFile {
  readonly path: string;
  readonly holder: Holder;
  readonly leaseMs: number;
  readonly now: () => Date;
  readonly #space: string;

  constructor(path: string, options: LeaseOptions = {}) {
    this.path = path;
    this.holder = options.holder ?? { pid: process.pid, host: hostname() };
    this.leaseMs = options.leaseMs ?? LEASE_MS;
    this.now = options.now ?? (() => new Date());
    this.#space = this.holder.host === hostname() ? processSpace() : this.holder.host;
  }

  /** Who holds it, or null if nobody alive does. */
  current(): LeaseHolder | null {
    const standing = this.look();
    return this.#isAlive(standing) ? this.#describe(standing) : null;
  }

  /**
   * Takes the lease with a fence above `above` and above every one before. With `force` also from a living holder,
   * who is fenced off by that. Throws `LeaseHeld`, or the system's error if the folder can't be written.
   */
  async take(options: { above?: number; force?: boolean } = {}): Promise<Lease> {
    for (let attempt = 1; ; attempt++) {
      const standing = this.look();
      if (standing.beingMade && attempt < MAX_ATTEMPTS) {
        // Its holder is about to say who it is.
        await sleep(MAKING_MS);
        continue;
      }
      const blocked = this.#isAlive(standing) && !options.force;
      if (blocked || attempt === MAX_ATTEMPTS) throw new LeaseHeld(this.#describe(standing));
      const lease = await this.#claim(Math.max(standing.fence, options.above ?? 0) + 1);
      if (lease) return lease;
      // Somebody else claimed this very fence, so the folder says something new: look again.
    }
  }

  /** The highest fence in the folder. `without` leaves one claim out. */
  look(without?: number): Standing {
    let standing = this.#read(this.path);
    for (const fence of claimsOf(this.path, readdirSync(dirname(this.path)))) {
      if (fence > standing.fence && fence !== without) standing = { ...this.#read(claimPath(this.path, fence)), fence };
    }
    return standing;
  }

  /** The last record that was known to be on the disk when the file was written; null if it does not say. */
  head(): Head | null {
    try {
      return Content.parse(JSON.parse(readIfThere(this.path) ?? '')).head ?? null;
    } catch {
      return null;
    }
  }

  contentFor(fence: number, token: string, head: Head | null): string {
    const heartbeat = this.now().toISOString();
    const content: Holding = { ...this.holder, fence, space: this.#space, token, heartbeat, ...(head ? { head } : {}) };
    return `${JSON.stringify(content)}\n`;
  }

  async #claim(fence: number): Promise<Lease | null> {
    const token = randomUUID();
    const lease = new Lease(this, fence, token);
    lease.head = this.head();
    const claim = claimPath(this.path, fence);
    let made = false;
    let taken = false;
    // As soon as it is there others read who it is: they must find it alive, those in this process too.
    lease.hold();
    try {
      made = await makeWhole(claim, lease.content(), draftPath(this.path, token));
      // The claim of a fence long passed can still be made, once the row has been cleared: it counts for nothing.
      taken = made && this.look(fence).fence < fence && (await lease.renew());
    } finally {
      if (!taken) lease.drop();
      if (made && !taken) await rm(claim, { force: true });
    }
    if (!taken) return null;
    await this.#clear(fence);
    lease.start();
    return lease;
  }

  #read(path: string): Standing {
    const text = readIfThere(path);
    if (text === undefined) return { fence: 0, content: null, beingMade: false };
    try {
      const content = Content.parse(JSON.parse(text));
      if ('token' in content) return { fence: content.fence, content, beingMade: false };
      return { fence: content.fence, content: null, beingMade: false };
    } catch {
      // Not whole, as there are disks on which a file can't appear whole: it is being written, or was cut off in a crash.
      const file = statSync(path, { throwIfNoEntry: false });
      return { fence: 0, content: null, beingMade: this.#isFresh(file?.mtimeMs) };
    }
  }

  /** Takes away the claims before this one, and drafts that a crash has left. */
  async #clear(below: number): Promise<void> {
    const folder = dirname(this.path);
    const names = await readdir(folder);
    const claims = claimsOf(this.path, names).filter((fence) => fence < below);
    const old = claims.map((fence) => claimPath(this.path, fence));
    for (const name of names.filter((one) => isDraft(this.path, one))) {
      const file = statSync(join(folder, name), { throwIfNoEntry: false });
      if (!this.#isFresh(file?.mtimeMs)) old.push(join(folder, name));
    }
    await Promise.all(old.map((path) => rm(path, { force: true })));
  }

  #isAlive({ content, beingMade }: Standing): boolean {
    if (!content) return beingMade;
    if (!this.#isFresh(Date.parse(content.heartbeat))) return false;
    if (content.space !== this.#space) return true;
    if (content.pid === this.holder.pid) return held.has(content.token);
    return isRunning(content.pid);
  }

  /** Clocks of two hosts differ: one that is far ahead must not hold a lease for ever. */
  #isFresh(at: number | undefined): boolean {
    return at !== undefined && Math.abs(this.now().getTime() - at) <= this.leaseMs;
  }

  #describe({ fence, content }: Standing): LeaseHolder {
    const { pid, host } = content ?? { pid: 0, host: 'an unknown host' };
    return { pid, host, fence, ours: pid === this.holder.pid && content?.space === this.#space };
  }
}

/** A lease that was taken. It keeps itself alive until it is given back or lost. */
export class Lease {
  readonly fence: number;
  /** The last record that is on the disk: what the files say of it when they are written next. */
  head: Head | null = null;
  readonly #file: LeaseFile;
  readonly #token: string;
  /** What the lease file looked like when we last wrote it: as long as it does, nobody else has. */
  #mark: Mark | null = null;
  #timer: NodeJS.Timeout | undefined;
  #renewing: Promise<boolean> | null = null;
  #state: 'held' | 'lost' | 'released' = 'held';
  #onLost: () => void = () => undefined;

  constructor(file: LeaseFile, fence: number, token: string) {
    this.#file = file;
    this.fence = fence;
    this.#token = token;
  }

  /** What a file says of this lease now. */
  content(): string {
    return this.#file.contentFor(this.fence, this.#token, this.head);
  }

  /** It is somebody's, though it may not be taken yet. */
  hold(): void {
    held.add(this.#token);
  }

  /** It was not taken after all. */
  drop(): void {
    held.delete(this.#token);
  }

  /** Three heartbeats in the time after which a holder counts as gone. The timer keeps no process alive. */
  start(): void {
    this.#timer = setInterval(() => void this.renew(), this.#file.leaseMs / 3);
    this.#timer.unref();
  }

  /** Called once, when it turns out that somebody else has taken the lease. */
  whenLost(listener: () => void): void {
    this.#onLost = listener;
  }

  /** True while we hold it. Quick as long as nothing has changed, so it can be asked before every write. */
  check(): boolean {
    if (this.#state !== 'held') return false;
    if (this.#mark?.holds()) return true;
    if (!this.#isHighest()) this.#lose();
    // Somebody wrote over it who has no right to, or removed it.
    else void this.renew();
    return this.#state === 'held';
  }

  /** Writes a heartbeat; false if the lease is lost. One that can't be written is tried again at the next. */
  renew(): Promise<boolean> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  /** Gives it back: the file keeps the fence, so that the next one is higher. */
  async release(): Promise<void> {
    this.#stop();
    await this.#renewing;
    if (this.#state !== 'held') return;
    this.#state = 'released';
    if (this.#isHighest()) {
      const content: z.infer<typeof Released> = { fence: this.fence, ...(this.head ? { head: this.head } : {}) };
      const mark = await replace(this.#file.path, `${JSON.stringify(content)}\n`, this.#token);
      mark.close();
    }
    await rm(claimPath(this.#file.path, this.fence), { force: true });
  }

  async #renew(): Promise<boolean> {
    if (this.#state !== 'held') return false;
    try {
      if (!this.#isHighest()) return this.#lose();
      this.#remember(await replace(this.#file.path, this.content(), this.#token));
      // A new holder may have written just before us: its claim was there before, so it shows now.
      return this.#isHighest() || this.#lose();
    } catch (error) {
      if (!this.#mark) throw error;
      // A full disk, a folder that can't be read: the next heartbeat tries again, and every append looks by itself.
      return true;
    }
  }

  #isHighest(): boolean {
    try {
      const { fence, content } = this.#file.look();
      return fence < this.fence || (fence === this.fence && (content === null || content.token === this.#token));
    } catch (error) {
      // The folder itself is gone, and the session with it.
      if (codeOf(error) === 'ENOENT') return false;
      throw error;
    }
  }

  #lose(): false {
    if (this.#state === 'held') {
      this.#state = 'lost';
      this.#stop();
      this.#onLost();
    }
    return false;
  }

  #remember(mark: Mark): void {
    this.#mark?.close();
    this.#mark = mark;
    // One that was lost meanwhile has nothing to compare any more.
    if (this.#state !== 'held') mark.close();
  }

  #stop(): void {
    clearInterval(this.#timer);
    held.delete(this.#token);
    this.#mark?.close();
  }
}

const claimPath = (path: string, fence: number): string => `${path}.${fence}`;
const draftPath = (path: string, token: string): string => `${path}.${token}.tmp`;
const isDraft = (path: string, name: string): boolean => name.startsWith(`${basename(path)}.`) && name.endsWith('.tmp');

/** What systems say where there are no hard links: FAT, some network disks and shared folders. */
const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EINVAL', 'EMLINK', 'EACCES', 'UNKNOWN'];

/**
 * Makes a file that was not there, with its content: whoever finds it can read it, and a crash leaves all or nothing.
 * @param draft a path nobody else uses
 * @returns false if there is one already
 */
async function makeWhole(path: string, text: string, draft: string): Promise<boolean> {
  try {
    await writeFile(draft, text);
    await link(draft, path).catch(async (error: unknown) => {
      if (!NO_LINKS.includes(codeOf(error) ?? '')) throw error;
      await writeFile(path, text, { flag: 'wx' });
    });
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Fences of the claims among the names of a folder. */
function claimsOf(path: string, names: readonly string[]): number[] {
  const start = `${basename(path)}.`;
  return names
    .filter((name) => name.startsWith(start) && /^[1-9]\d*$/.test(name.slice(start.length)))
    .map((name) => Number(name.slice(start.length)));
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Replaces a file in one step and returns its mark. */
async function replace(path: string, text: string, token: string): Promise<Mark> {
  const draft = draftPath(path, token);
  try {
    await writeFile(draft, text);
    return await markOf(draft, path, () => renamed(draft, path));
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Windows refuses for a moment while another process reads the file. */
async function renamed(from: string, to: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await rename(from, to);
    } catch (error) {
      if (attempt === 10 || !['EPERM', 'EACCES', 'EBUSY'].includes(codeOf(error) ?? '')) throw error;
      await sleep(20);
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it runs, as another user.
    return codeOf(error) === 'EPERM';
  }
}

/** Names the set of processes in which a pid of ours means something. */
function processSpace(): string {
  let namespace = '';
  try {
    namespace = readlinkSync('/proc/self/ns/pid');
  } catch {
    // Not Linux: one space per host.
  }
  return `${process.platform} ${hostname()} ${namespace}`;
}
