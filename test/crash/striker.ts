import { execFileSync } from 'node:child_process';
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import type { LogRecord } from '../../src/protocol/record.ts';
import { fill } from '../support/memory-disk.ts';
import { type Act, FILLER, type Line, type Plan, type Strike } from './plan.ts';
import type { Watch } from './watched-store.ts';

/** Tells the parent, at once and whole: the next thing may be the end of this process. */
export const tell = (line: Line): void => {
  writeSync(1, `${JSON.stringify(line)}\n`);
};

/** Lets the planned thing happen at the planned moment, once. */
export class Striker implements Watch {
  readonly #plan: Plan;
  #strike: Strike | undefined;
  #before = 0;
  #after = 0;
  /** Those with more records than the strike asks for. */
  #batches = 0;
  #opening = 0;
  readonly #begun = { running: 0, provisioning: 0 };

  constructor(plan: Plan) {
    this.#plan = plan;
    this.#strike = plan.strike;
  }

  before(): void {
    this.#before += 1;
    this.#at((where) => where.kind === 'append' && where.when === 'before' && where.n === this.#before);
  }

  after(records: readonly LogRecord[]): void {
    this.#after += 1;
    if (this.#after === 1) tell({ said: 'opened', clock: this.#opening });
    const types = records.map(({ event }) => event.type);
    tell({ said: 'appended', hashes: records.map(({ hash }) => hash), types });
    for (const type of types) {
      if (type === 'drover.tool_started') this.#later('running');
      if (type === 'drover.sandbox_provisioning') this.#later('provisioning');
    }
    this.#at((where) => where.kind === 'append' && where.when === 'after' && where.n === this.#after);
    this.#at((where) => where.kind === 'batch' && where.records < records.length && where.n === ++this.#batches);
  }

  opening(): void {
    this.#opening += 1;
    this.#at((where) => where.kind === 'opening' && where.n === this.#opening);
  }

  #at(isNow: (where: Strike['where']) => boolean): void {
    if (!this.#strike || !isNow(this.#strike.where)) return;
    const { act } = this.#strike;
    this.#strike = undefined;
    tell({ said: 'strikes' });
    this.#do(act);
  }

  #later(kind: 'running' | 'provisioning'): void {
    this.#begun[kind] += 1;
    const where = this.#strike?.where;
    if (where?.kind === kind && where.n === this.#begun[kind])
      setTimeout(() => this.#at((one) => one === where), where.ms);
  }

  #do(act: Act): void {
    if (act === 'kill_container' || act === 'reboot') killContainers(this.#plan.workspace);
    if (act === 'restart_engine') restartEngine(this.#plan.restart ?? []);
    if (act === 'fill_disk') fill(join(this.#plan.workspace, '.drover', FILLER));
    if (act === 'stop') process.kill(process.pid, 'SIGSTOP');
    if (act === 'kill' || act === 'reboot') process.kill(process.pid, 'SIGKILL');
  }
}

function restartEngine([program = '', ...args]: readonly string[]): void {
  execFileSync(program, args, { stdio: 'pipe', timeout: 60_000 });
}

/** Kills what runs for this workspace, and returns when it is dead. */
function killContainers(workspace: string): void {
  const docker = (...args: string[]) => execFileSync('docker', args, { encoding: 'utf8', timeout: 30_000 });
  const running = docker('ps', '--quiet', '--filter', `label=drover.workspace=${workspace}`)
    .split('\n')
    .filter(Boolean);
  for (const id of running) {
    try {
      docker('kill', id);
    } catch (error) {
      // It may have ended meanwhile.
      if (docker('ps', '--quiet', '--filter', `id=${id}`).trim() !== '') throw error;
    }
  }
}
