import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Rehearsal, startRehearsal } from '../../src/rehearsal/server.ts';
import { docker } from '../support/engine.ts';
import { makeFolder } from '../support/temp.ts';
import { Course } from './course.ts';
import { endAllHosts, type HostProcess } from './host-process.ts';
import { OwnEngine } from './own-engine.ts';
import { nameOf, type Point, survive } from './point.ts';
import type { Counts, Group } from './points.ts';
import { verdictOf } from './verdict.ts';

/** Two sessions at a time: each waits for its engine as much as it works. */
const AT_ONCE = 2;

export interface Report {
  points: number;
  survived: number;
  duplicated: number;
  lost: number;
  /** Points that this run of the session did not get to: it was over before. They count for nothing else. */
  missed: string[];
  /** One line for each point that did not survive. */
  failures: string[];
}

/** A run of many points: its folder, and the model's server that all of them share. */
export class CrashRun {
  readonly folder: string;
  readonly #server: Rehearsal;
  readonly #slots = new Slots(AT_ONCE);
  #engine: OwnEngine | undefined;

  private constructor(folder: string, server: Rehearsal) {
    this.folder = folder;
    this.#server = server;
  }

  static async open(): Promise<CrashRun> {
    const folder = await makeFolder('drover-crash-');
    // What a host has compiled the next one need not compile again.
    process.env.NODE_COMPILE_CACHE = join(folder, 'compiled');
    return new CrashRun(folder, await startRehearsal());
  }

  /** Plays the session undisturbed, and counts what can be struck in it. */
  async count(): Promise<Counts> {
    await using course = await Course.open(join(this.folder, 'undisturbed'), { url: this.#server.url });
    const host = course.start();
    const problem = await host.ended();
    const { problems } = await verdictOf(course);
    if (problem !== undefined) problems.push(problem);
    if (problems.length > 0) throw new Error(`Even undisturbed the session goes wrong:\n${problems.join('\n')}`);
    return this.#count(host);
  }

  /** Plays these points of a group; what comes after `deadline` (ms since 1970) did not survive. */
  async play({ needs }: Group, points: readonly Point[], deadline: number): Promise<Report> {
    if (needs === 'engine') this.#engine ??= await OwnEngine.start(join(this.folder, 'engine'));
    const report: Report = { points: 0, survived: 0, duplicated: 0, lost: 0, missed: [], failures: [] };
    const left = [...points];
    const next = async (): Promise<void> => {
      for (let point = left.shift(); point; point = left.shift()) {
        await this.#slots.take();
        await this.#play(point, deadline, report).finally(() => this.#slots.give());
      }
    };
    // An engine that is killed is killed for every session on it.
    await Promise.all(Array.from({ length: needs === 'engine' ? 1 : AT_ONCE }, next));
    return report;
  }

  /** Ends every process, container and folder of this run. */
  async [Symbol.asyncDispose](): Promise<void> {
    await endAllHosts();
    await this.#engine?.[Symbol.asyncDispose]();
    await this.#server.close();
    const format = '{{.ID}} {{.Label "drover.workspace"}}';
    const rows = docker('ps', '--all', '--filter', 'label=drover.workspace', '--format', format).split('\n');
    const ours = rows.filter((row) => row.includes(` ${this.folder}/`)).map((row) => row.split(' ')[0] ?? '');
    if (ours.length > 0) docker('rm', '--force', '--volumes', ...ours);
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async #play(point: Point, deadline: number, report: Report): Promise<void> {
    const name = nameOf(point);
    try {
      if (Date.now() > deadline) throw new Error('the time was over');
      const engine = this.#engine && { engine: this.#engine };
      const verdict = await survive(point, { folder: this.folder, url: this.#server.url, ...engine });
      if (!verdict) {
        report.missed.push(name);
        return;
      }
      report.duplicated += verdict.duplicated;
      report.lost += verdict.lost;
      if (verdict.problems.length === 0) report.survived += 1;
      else report.failures.push(`${name}: ${verdict.problems.slice(0, 5).join('; ')}`);
    } catch (error) {
      report.failures.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
    report.points += 1;
  }

  #count(host: HostProcess): Counts {
    const batches = host.lines.flatMap((line) => (line.said === 'appended' ? [line.types] : []));
    const all = batches.flat();
    const count = (type: string) => all.filter((one) => one === type).length;
    const opened = host.lines.find((line) => line.said === 'opened');
    return {
      appends: batches.length,
      sizes: batches.map((types) => types.length),
      ready: batches.findIndex((types) => types.includes('drover.sandbox_ready')) + 1,
      opening: opened?.said === 'opened' ? opened.clock : 0,
      running: count('drover.tool_started'),
      provisioning: count('drover.sandbox_provisioning'),
      requests: this.#server.requests.filter(({ path }) => path === '/v1/messages').length,
    };
  }
}

/** Lets so many at once do something; the others wait, first come first served. */
class Slots {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  async take(): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }
}
