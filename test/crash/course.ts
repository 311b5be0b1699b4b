import { mkdir, readFile, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import type { SessionReading } from '../../src/log/log.ts';
import { openStore } from '../../src/log/store.ts';
import { docker } from '../support/engine.ts';
import { mountMemory, unmount } from '../support/memory-disk.ts';
import { HostProcess } from './host-process.ts';
import type { OwnEngine } from './own-engine.ts';
import type { Strike } from './plan.ts';

export const IMAGE = 'drover-tiny:latest';
/** The file the session's commands leave their lines in, and the lines. */
const FILE = 'crash-course.txt';
export const LINES = ['alpha', 'beta', 'gamma', 'delta', 'epsilon'];
/** Bytes. No line is shorter than three times this. */
const INTO_A_LINE = 20;

export interface CourseOptions {
  /** Where the rehearsal answers. */
  url: string;
  leaseMs?: number;
  retryBaseMs?: number;
  /** KiB of a disk of its own for the sessions. */
  diskKib?: number;
  /** Default: the machine's own. */
  engine?: OwnEngine;
}

/** One session in a folder of its own, from its first host process to the last. */
export class Course {
  readonly workspace: string;
  readonly hosts: HostProcess[] = [];
  readonly #folder: string;
  readonly #options: CourseOptions;

  private constructor(folder: string, options: CourseOptions) {
    this.#folder = folder;
    this.workspace = join(folder, 'workspace');
    this.#options = options;
  }

  /** `folder` is made, and removed with everything in it and on the engine. */
  static async open(folder: string, options: CourseOptions): Promise<Course> {
    const course = new Course(folder, options);
    await mkdir(course.workspace, { recursive: true });
    if (options.diskKib !== undefined) mountMemory(join(course.workspace, '.drover'), options.diskKib);
    return course;
  }

  /** A host begins to work on the session. */
  start(strike?: Strike): HostProcess {
    const { url, leaseMs, retryBaseMs, engine } = this.#options;
    const plan = {
      workspace: this.workspace,
      cache: join(this.#folder, 'cache'),
      url,
      image: IMAGE,
      ...(leaseMs === undefined ? {} : { leaseMs }),
      ...(retryBaseMs === undefined ? {} : { retryBaseMs }),
      ...(engine ? { restart: [...engine.restart] } : {}),
      ...(strike ? { strike } : {}),
    };
    const host = new HostProcess(plan, engine ? { ...process.env, DOCKER_HOST: engine.host } : process.env);
    this.hosts.push(host);
    return host;
  }

  /** What is on the disk: the log's bytes, and how the store reads it. Undefined if no session can be read. */
  async read(): Promise<{ path: string; bytes: Buffer; reading: SessionReading } | undefined> {
    const store = openStore({ root: join(this.workspace, '.drover') });
    try {
      for (const id of await store.list()) {
        const reading = await store.read(id);
        if (reading.records.length === 0) continue;
        const path = join(store.root, 'sessions', id, 'log.jsonl');
        return { reading, path, bytes: await readFile(path) };
      }
      return undefined;
    } finally {
      await store.dispose();
    }
  }

  /** Leaves only a share of the batch that a host, now dead, appended last, and the end of that is torn. */
  async tearOff(host: HostProcess, share: number): Promise<void> {
    const { path, bytes, start } = await this.#lastBatch(host);
    const end = start + Math.floor((bytes.length - start) * share);
    // Between two records nothing would be torn.
    const isWhole = bytes.subarray(end - INTO_A_LINE, end + 1).includes('\n');
    await truncate(path, isWhole ? end - 2 * INTO_A_LINE : end);
  }

  /** Leaves only the first records of that batch, whole. It has more. */
  async cutOff(host: HostProcess, records: number): Promise<void> {
    const { path, bytes, start } = await this.#lastBatch(host);
    let end = start;
    for (let kept = 0; kept < records; kept += 1) end = bytes.indexOf('\n', end) + 1;
    await truncate(path, end);
  }

  /** Where what a host was told last begins; nobody has acted on it. It counts as not told from now on. */
  async #lastBatch(host: HostProcess): Promise<{ path: string; bytes: Buffer; start: number }> {
    const hashes = host.unsay();
    const found = await this.read();
    const first = found?.reading.records.find(({ hash }) => hash === hashes[0]);
    if (!found || !first) throw new Error('There is no batch to tear.');
    const { path, bytes } = found;
    return { path, bytes, start: bytes.lastIndexOf('\n', bytes.indexOf(`"hash":"${first.hash}"}\n`)) + 1 };
  }

  /** What the commands have left, line by line. */
  async effects(): Promise<string[]> {
    const text = await readFile(join(this.workspace, FILE), 'utf8').catch(() => '');
    return text.split('\n').filter(Boolean);
  }

  /** The session's containers, one in each line of `format`. */
  containers(format: string): string[] {
    return this.#docker('ps', '--all', '--filter', `label=drover.workspace=${this.workspace}`, '--format', format)
      .split('\n')
      .filter(Boolean);
  }

  #docker(...args: string[]): string {
    return this.#options.engine?.docker(...args) ?? docker(...args);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.hosts.map((host) => host.end()));
    const left = this.containers('{{.ID}}');
    if (left.length > 0) this.#docker('rm', '--force', '--volumes', ...left);
    if (this.#options.diskKib !== undefined) unmount(join(this.workspace, '.drover'));
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
