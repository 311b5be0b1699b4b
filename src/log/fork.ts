import { constants } from 'node:fs';
import { copyFile, type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { SessionId } from '../protocol/ids.ts';
import type { Draft, LogRecord, Seq } from '../protocol/record.ts';
import { appendFailure } from './failure.ts';
import { parseLine } from './line.ts';
import { eachLine } from './lines.ts';
import { AppendFailed, SessionMissing } from './log.ts';
import { BLOB_FOLDER, codeOf, LOG_FILE, sessionFolder, sessionsFolder, syncFolder } from './paths.ts';
import { ready, serialize } from './serialize.ts';

/** Begins with a dot, so it is no session yet. */
const STAGING = '.fork-';
/** What a crash left half-made is taken away by a later fork, in ms. */
const STALE_MS = 60 * 60_000;
const CHUNK_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;

/** The record a fork goes up to, that one included. */
export interface ForkPoint {
  session: SessionId;
  seq: Seq;
  hash: string;
}

/**
 * Makes a session from the beginning of another: the log's bytes up to a record, as they are, the blobs these records
 * name, then `drafts`. It appears as a whole or not at all, and nobody holds its lease.
 * @throws SessionMissing; AppendFailed where the record is not there, or the disk refuses
 */
export async function forkSession(
  root: string,
  from: ForkPoint,
  id: SessionId,
  drafts: readonly Draft[],
  now: Date,
): Promise<void> {
  const sessions = sessionsFolder(root);
  const staging = join(sessions, `${STAGING}${id}`);
  try {
    await clearStale(sessions);
    const prefix = await findPrefix(sessionFolder(root, from.session), from);
    await mkdir(staging);
    await copyBlobs(prefix, sessionFolder(root, from.session), staging);
    await writeLog(prefix, from, staging, drafts, now);
    await syncFolder(staging);
    await rename(staging, sessionFolder(root, id));
    await syncFolder(sessions);
  } catch (error) {
    await rm(staging, { recursive: true, force: true }).catch(() => undefined);
    if (codeOf(error) === 'ENOENT') throw new SessionMissing(from.session);
    throw appendFailure(error);
  }
}

interface Prefix {
  log: string;
  /** Bytes up to the end of the last record, its newline not counted. */
  bytes: number;
  fence: number;
  blobs: ReadonlySet<string>;
}

async function findPrefix(folder: string, { seq, hash }: ForkPoint): Promise<Prefix> {
  const log = join(folder, LOG_FILE);
  const blobs = new Set<string>();
  let fence = 0;
  let bytes: number | undefined;
  const take = (record: LogRecord | null, end: number) => {
    if (bytes !== undefined || !record) return;
    fence = Math.max(fence, record.fence);
    for (const ref of record.local?.blobs ?? []) if (/^[0-9a-f]{64}$/.test(ref.sha256)) blobs.add(ref.sha256);
    if (record.seq === seq && record.hash === hash) bytes = end;
  };
  const check = (line: Buffer, offset: number) => take(parseLine(line, 0, line.length), offset + line.length);
  await eachLine(log, { check, skip: () => undefined }, true);
  if (bytes === undefined) {
    throw new AppendFailed(
      `Record ${seq} of the session is not in its log any more as it was shown, so no fork was made there.`,
    );
  }
  return { log, bytes, fence, blobs };
}

/** A blob that is missing or damaged in the one session is so in the other. */
async function copyBlobs({ blobs }: Prefix, from: string, to: string): Promise<void> {
  if (blobs.size === 0) return;
  const folder = join(to, BLOB_FOLDER);
  await mkdir(folder);
  for (const name of blobs) {
    const target = join(folder, name);
    try {
      await copyFile(join(from, BLOB_FOLDER, name), target, constants.COPYFILE_FICLONE);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') continue;
      throw error;
    }
    await synced(target, 'r+', async () => undefined);
  }
  await syncFolder(folder);
}

async function writeLog(
  prefix: Prefix,
  from: ForkPoint,
  folder: string,
  drafts: readonly Draft[],
  now: Date,
): Promise<void> {
  const at = now.toISOString();
  const head = { seq: from.seq, hash: from.hash };
  const { bytes } = serialize(
    drafts.map((draft) => ready(draft, at)),
    head,
    prefix.fence + 1,
    at,
  );
  await synced(join(folder, LOG_FILE), 'wx', async (file) => {
    await copyBytes(prefix, file);
    await file.writeFile(Buffer.concat([Buffer.from([NEWLINE]), bytes]));
  });
}

async function copyBytes({ log, bytes }: Prefix, to: FileHandle): Promise<void> {
  const source = await open(log, 'r');
  try {
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, bytes));
    for (let at = 0; at < bytes; ) {
      const { bytesRead } = await source.read(chunk, 0, Math.min(chunk.length, bytes - at), at);
      if (bytesRead === 0) throw new AppendFailed('The log became shorter while it was copied, so no fork was made.');
      await to.writeFile(chunk.subarray(0, bytesRead));
      at += bytesRead;
    }
  } finally {
    await source.close();
  }
}

async function synced(path: string, flags: string, act: (file: FileHandle) => Promise<void>): Promise<void> {
  const file = await open(path, flags);
  try {
    await act(file);
    await file.datasync();
  } finally {
    await file.close();
  }
}

async function clearStale(sessions: string): Promise<void> {
  for (const name of await readdir(sessions)) {
    if (!name.startsWith(STAGING)) continue;
    const path = join(sessions, name);
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > STALE_MS) await rm(path, { recursive: true, force: true });
  }
}
