import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { SessionId } from '../protocol/ids.ts';
import { type Draft, draft, type Seq } from '../protocol/record.ts';
import { appendFailure } from './failure.ts';
import type { Lease, LeaseFile } from './lease.ts';
import { AppendFailed, type Damage, type LogDoor, SessionMissing } from './log.ts';
import { LogFile } from './log-file.ts';
import { cutTornTail, Reported } from './mend.ts';
import { codeOf, LOG_FILE, syncFolder } from './paths.ts';
import { scanFile } from './read.ts';
import { savedHead } from './saved-head.ts';
import { Scanner } from './scan.ts';
import { type Head, NO_HEAD } from './serialize.ts';
import { type Header, positionOf, readHeader } from './snapshot.ts';
import { Writer } from './writer.ts';

export interface Opening {
  id: SessionId;
  folder: string;
  lease: LeaseFile;
  door?: LogDoor | undefined;
}

/** A former holder that still writes is met at most a few times: it is fenced off at its next append. */
const MAX_ATTEMPTS = 5;

/**
 * Takes a session's lease, mends the end of its log, and appends `drover.woke` with what the log has lost.
 * `force` takes the lease from a living holder too.
 * @throws LeaseHeld while another living process has it; SessionMissing; AppendFailed
 */
export async function openWriter(opening: Opening, why: string, force: boolean): Promise<Writer> {
  try {
    const log = await OpenLog.from(opening);
    await log.catchUp();
    log.assertWritable();
    const file = LogFile.open(log.path, { create: false });
    const lease = await leaseFor(file, () => opening.lease.take({ above: log.scanner.fence, force }));
    return await wake(opening, file, lease, log, why);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') throw new SessionMissing(opening.id);
    throw appendFailure(error);
  }
}

/** Makes a session's folder and writes its first records. If that fails, the folder is taken away again. */
export async function createWriter(opening: Opening, first: readonly Draft[]): Promise<Writer> {
  const { id, folder, door } = opening;
  try {
    await mkdir(folder);
  } catch (error) {
    throw codeOf(error) === 'EEXIST' ? sessionExists(id) : appendFailure(error);
  }
  try {
    const file = LogFile.open(join(folder, LOG_FILE), { create: true });
    const lease = await leaseFor(file, () => opening.lease.take());
    const start = { head: NO_HEAD, end: 0, needsNewline: false, keptSeq: -1, damaged: false };
    const writer = new Writer({ id, folder, file, lease, door, now: opening.lease.now, ...start });
    return await started(writer, async () => {
      await writer.append(first);
      await syncFolder(folder);
      await syncFolder(dirname(folder));
    });
  } catch (error) {
    // We made it a moment ago and nothing in it was acknowledged.
    await rm(folder, { recursive: true, force: true });
    throw appendFailure(error);
  }
}

export const sessionExists = (id: SessionId): AppendFailed =>
  new AppendFailed(`There is a session ${id} already; start one with a new id.`);

async function leaseFor(file: LogFile, take: () => Promise<Lease>): Promise<Lease> {
  try {
    return await take();
  } catch (error) {
    file.close();
    throw error;
  }
}

/** The writer, once `act` has gone well; otherwise the session is let go. */
async function started(writer: Writer, act: () => Promise<unknown>): Promise<Writer> {
  try {
    await act();
    return writer;
  } catch (error) {
    await writer.release();
    throw error;
  }
}

/** What a new holder knows of the log so far. */
class OpenLog {
  readonly path: string;
  readonly scanner: Scanner;
  /** The last record of the kept state that reading began at; -1 if it began at the start. */
  readonly keptSeq: Seq;
  readonly reported = new Reported();
  readonly #saved: Head | null;
  #savedMet = false;
  #records = 0;

  private constructor(path: string, saved: Head | null, kept: Header | null) {
    this.path = path;
    this.#saved = saved;
    this.keptSeq = kept?.head.seq ?? -1;
    this.#records = kept ? kept.head.seq + 1 : 0;
    this.#savedMet = kept?.head.hash === saved?.hash;
    this.scanner = new Scanner(kept ? positionOf(kept) : undefined);
  }

  static async from({ folder, lease }: Opening): Promise<OpenLog> {
    const saved = await savedHead(folder, lease);
    return new OpenLog(join(folder, LOG_FILE), saved, await readHeader(folder, true));
  }

  /** Reads what has been appended since the last call. */
  async catchUp(): Promise<void> {
    await scanFile(this.path, this.scanner, { afterChunk: async () => this.#note() });
    this.#note();
  }

  #note(): void {
    const records = this.scanner.take();
    this.#records += records.length;
    this.reported.add(records);
    this.#savedMet ||= records.some(({ seq, hash }) => seq === this.#saved?.seq && hash === this.#saved.hash);
  }

  /** Records that had been saved and are not there any more: lines cut off at the end leave no trace in the log itself. */
  cutEnd(): Damage[] {
    const lost = (this.#saved?.seq ?? -1) - this.scanner.head.seq;
    if (this.#savedMet || lost <= 0) return [];
    const end = this.scanner.wholeEnd;
    return [
      {
        range: [end, end],
        reason: `the end was cut off: ${lost} saved ${lost === 1 ? 'record is' : 'records are'} gone`,
      },
    ];
  }

  assertWritable(): void {
    if (this.scanner.newer) {
      throw new AppendFailed(
        'This session was written by a newer Drover, so it can only be read here; update Drover to continue it.',
      );
    }
    if (this.#records === 0) {
      throw new AppendFailed(
        "This session's log has no readable record, so nothing can be added to it; its files are left as they are.",
      );
    }
  }
}

async function wake(opening: Opening, file: LogFile, lease: Lease, log: OpenLog, why: string): Promise<Writer> {
  const { id, folder, door } = opening;
  const { now, holder } = opening.lease;
  let damage: Damage[];
  try {
    damage = await mendTail(folder, file, lease, log);
  } catch (error) {
    file.close();
    await lease.release();
    throw error;
  }
  const { head, wholeEnd: end, needsNewline } = log.scanner;
  const damaged = damage.length > 0;
  const parts = { id, folder, file, lease, door, now, head, end, needsNewline, keptSeq: log.keptSeq, damaged };
  const writer = new Writer(parts);
  const first = [draft('drover.woke', { why, holder: { ...holder } }), ...log.reported.reportsFor(damage)];
  return started(writer, () => writer.append(first));
}

/** Reads the log to its end and cuts off a torn tail. A former holder may write at this very moment: then again. */
async function mendTail(folder: string, file: LogFile, lease: Lease, log: OpenLog): Promise<Damage[]> {
  const { scanner } = log;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    await log.catchUp();
    if (scanner.fence >= lease.fence)
      throw new AppendFailed('Another window took this session at the same moment; try again.');
    if (file.size() !== scanner.offset) continue;
    const damage = [...scanner.damage, ...log.cutEnd()];
    if (scanner.offset === scanner.wholeEnd) return damage;
    return [...damage, cutTornTail(folder, file, scanner.wholeEnd, scanner.offset)];
  }
  throw new AppendFailed(
    'The session could not be taken over: its former holder keeps writing; close its window first.',
  );
}
