import { fdatasyncSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { SessionStore, SessionWriter } from '../../src/log/log.ts';
import { openStore } from '../../src/log/store.ts';
import { text } from '../../src/protocol/content.ts';
import { draft, type LogRecord } from '../../src/protocol/record.ts';
import { makeFolder } from '../support/temp.ts';
import { figure, quantile } from './figure.ts';
import type { Bench } from './given.ts';
import { writeLogs } from './search-logs.ts';

const ROUNDS = 100;
/** Records of one round: so few that both sides, which take turns, find the disk in the same mood. */
const RECORDS = 40;
/** The rounds that are compared are the quicker ones: what else the machine does only ever adds to them. */
const SHARE = 0.25;

/** What an agent typically says: a record of about 600 bytes. */
const said = () => draft('agent.message', { content: [text('word '.repeat(60))] });

/** Durable records, over a bare loop that writes the same bytes and syncs after each. ms per record. */
export const appendDurable: Bench = async () => {
  await using place = await Place.open();
  const { writer } = await place.session(0);
  const [record] = await writer.append([said()]);
  const line = Buffer.from(`${JSON.stringify(record)}\n`);
  const bare = openSync(join(place.folder, 'bare.jsonl'), 'a');
  const loop = () => {
    for (let n = 0; n < RECORDS; n++) {
      writeSync(bare, line);
      fdatasyncSync(bare);
    }
  };
  const appenders = async (count: number) => {
    const one = async () => {
      for (let n = 0; n < RECORDS / count; n++) await writer.append([said()]);
    };
    await Promise.all(Array.from({ length: count }, one));
  };
  const [one, bareOne] = await byTurns(() => appenders(1), loop);
  const [eight, bareEight] = await byTurns(() => appenders(8), loop);
  return [
    // Records per second: at least 0.9 times as many from one appender, at least 4 times as many from eight.
    figure('log.append_durable.1', 'ms', one / RECORDS, bareOne / RECORDS, 1.11),
    figure('log.append_durable.8', 'ms', eight / RECORDS, bareEight / RECORDS, 0.25),
  ];
};

/**
 * One more event in a session of 10,000, over writing all of them anew as one JSON file, which is what others do; and
 * in one of 100,000 over one of 1,000. Neither side syncs: that would cost either the same. ms per append.
 */
export const appendVsRewrite: Bench = async () => {
  await using place = await Place.open();
  const [small, middle, large] = [await place.session(100), await place.session(1000), await place.session(10_000)];
  const all: LogRecord[] = [...middle.records];
  const path = join(place.folder, 'history.json');
  const rewrite = () => {
    const last = all.at(-1);
    if (last) all.push(last);
    writeFileSync(path, JSON.stringify(all));
  };
  const append = async ({ writer }: { writer: SessionWriter }) => {
    for (let n = 0; n < RECORDS; n++) await writer.append([said()], { sync: false });
  };
  const [ours, theirs] = await byTurns(() => append(middle), rewrite);
  const [long, short] = await byTurns(
    () => append(large),
    () => append(small),
  );
  return [
    figure('log.append_vs_rewrite', 'ms', ours / RECORDS, theirs, 0.01),
    figure('log.append_vs_rewrite.flat', 'ms', long / RECORDS, short / RECORDS, 1.2),
  ];
};

/** What a quarter of the rounds of two acts that take turns stay below, in ms. The first round warms both up. */
async function byTurns(one: () => unknown, other: () => unknown): Promise<[number, number]> {
  const times: [number[], number[]] = [[], []];
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [n, act] of [one, other].entries()) {
      const started = performance.now();
      await act();
      if (round > 0) times[n]?.push(performance.now() - started);
    }
  }
  return [quantile(times[0], SHARE), quantile(times[1], SHARE)];
}

/** A folder with sessions of some length. */
class Place {
  readonly folder: string;
  readonly #stores: SessionStore[] = [];

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async open(): Promise<Place> {
    return new Place(await makeFolder('drover-bench-log-'));
  }

  /** `turns` of ten records each, and who may add to them. */
  async session(turns: number): Promise<{ writer: SessionWriter; records: LogRecord[] }> {
    const store = openStore({ root: join(this.folder, `drover-${this.#stores.length}`) });
    this.#stores.push(store);
    await writeLogs(store, 1, turns);
    const [id] = await store.list();
    if (!id) throw new Error('The session was not written.');
    const writer = await store.acquire(id, 'a benchmark');
    return { writer, records: turns > 1000 ? [] : (await writer.read()).records };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const store of this.#stores) await store.dispose();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
