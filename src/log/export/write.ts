import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DroverError, messageOf } from '../../protocol/errors.ts';
import type { SessionId } from '../../protocol/ids.ts';
import type { BlobRef, Local, LogRecord } from '../../protocol/record.ts';
import { BLOB_FOLDER, codeOf, LOG_FILE, sessionFolder } from '../paths.ts';
import { scanFile } from '../read.ts';
import { Scanner } from '../scan.ts';
import type { Head } from '../serialize.ts';
import { Slices } from '../slices.ts';
import { CHAIN_NOTE, EXPORT_VERSION, ExportFailed, type Header } from './format.ts';
import { redactedLine } from './redact.ts';

const NEWLINE = 0x0a;
const CHUNK_BYTES = 256 * 1024;
/** A multiple of three, so that the pieces' base64 can be joined. */
const BLOB_CHUNK_BYTES = 192 * 1024;

export interface ExportOptions {
  /** Takes out what tools were given and gave. */
  redact: boolean;
  /** Now, RFC 3339. */
  at: string;
}

export interface Exported {
  head: Head;
  /** Of the file. */
  bytes: number;
  blobs: number;
  /** Blobs that records name and that are not there, or not as they were: what is left of them is not exported. */
  missing: string[];
}

/**
 * Writes a session to one file, which is there as a whole or not at all. The session may go on meanwhile: the file has
 * what was in the log at the start.
 * @param root absolute path of the `.drover` folder
 * @throws ExportFailed if the log has no record that can be read, or the file can't be written
 */
export async function exportSession(
  root: string,
  id: SessionId,
  target: string,
  options: ExportOptions,
): Promise<Exported> {
  const folder = sessionFolder(root, id);
  const draft = `${target}.${process.pid}.tmp`;
  try {
    const file = await open(draft, 'w');
    let exported: Exported;
    try {
      exported = await writeAll(file, folder, id, options);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, target);
    return exported;
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    if (error instanceof DroverError) throw error;
    throw new ExportFailed(
      `The session could not be exported to ${target}: ${messageOf(error)}. Choose another place, and try again.`,
      { cause: error },
    );
  }
}

async function writeAll(file: FileHandle, folder: string, id: SessionId, options: ExportOptions): Promise<Exported> {
  const log = join(folder, LOG_FILE);
  const { size } = await stat(log);
  const scanner = new Scanner();
  await scanFile(log, scanner, { limit: size });
  const records = scanner.take();
  const [first] = records;
  if (!first) throw new ExportFailed('Nothing was exported: no record in this session’s log is whole.');
  const redaction = options.redact ? await measure(records) : null;
  const refs = redaction ? redaction.refs : refsOf(records.map(({ local }) => local));
  const header: Header = {
    drover_export: EXPORT_VERSION,
    session_id: id,
    title: 'title' in first.event && typeof first.event.title === 'string' ? first.event.title : id,
    exported_at: options.at,
    head: scanner.head,
    log_bytes: redaction ? redaction.bytes : size,
    blobs: refs.length,
    redaction: redaction && { what: 'tool inputs and outputs', records: redaction.records, chain: CHAIN_NOTE },
  };
  await file.write(`${JSON.stringify(header)}\n`);
  if (redaction) await writeLines(file, records);
  else await copyLog(file, log, size);
  const missing: string[] = [];
  for (const ref of refs) if (!(await writeBlob(file, folder, ref))) missing.push(ref.sha256);
  const { size: bytes } = await file.stat();
  return { head: scanner.head, bytes, blobs: refs.length - missing.length, missing };
}

interface Measured {
  bytes: number;
  records: number;
  /** Blobs that are still named. */
  refs: BlobRef[];
}

/** What redaction will make of the records: the header, which comes first, says it. */
async function measure(records: readonly LogRecord[]): Promise<Measured> {
  const kept: (Local | undefined)[] = [];
  const measured = { bytes: 0, records: 0 };
  for await (const { line, redacted, local } of inTurns(records)) {
    measured.bytes += Buffer.byteLength(line) + 1;
    if (redacted) measured.records += 1;
    kept.push(local);
  }
  return { ...measured, refs: refsOf(kept) };
}

async function writeLines(file: FileHandle, records: readonly LogRecord[]): Promise<void> {
  let text = '';
  for await (const { line } of inTurns(records)) {
    text += `${line}\n`;
    if (text.length < CHUNK_BYTES) continue;
    await file.write(text);
    text = '';
  }
  await file.write(text);
}

/** Redacted lines, with time for others in between. */
async function* inTurns(records: readonly LogRecord[]): AsyncGenerator<ReturnType<typeof redactedLine>> {
  const slices = new Slices();
  for (const record of records) {
    yield redactedLine(record);
    if (slices.due) await slices.pause();
  }
}

async function copyLog(file: FileHandle, log: string, size: number): Promise<void> {
  if (size === 0) return;
  let last = 0;
  for await (const piece of createReadStream(log, { end: size - 1, highWaterMark: CHUNK_BYTES })) {
    await file.write(piece);
    last = piece.at(-1);
  }
  if (last !== NEWLINE) await file.write('\n');
}

/** Each blob once. */
function refsOf(locals: readonly (Local | undefined)[]): BlobRef[] {
  const refs = new Map<string, BlobRef>();
  for (const local of locals) {
    for (const ref of local?.blobs ?? []) if (/^[0-9a-f]{64}$/.test(ref.sha256)) refs.set(ref.sha256, ref);
  }
  return [...refs.values()];
}

/** False if it is not there, or no longer what its name says: then nothing of it is written. */
async function writeBlob(file: FileHandle, folder: string, { sha256, media_type, bytes }: BlobRef): Promise<boolean> {
  const path = join(folder, BLOB_FOLDER, sha256);
  if (!(await isWhole(path, sha256))) return false;
  const start = JSON.stringify({ blob: { sha256, media_type, bytes } }).slice(0, -2);
  await file.write(`${start},"base64":"`);
  for await (const piece of createReadStream(path, { highWaterMark: BLOB_CHUNK_BYTES })) {
    await file.write(piece.toString('base64'));
  }
  await file.write('"}}\n');
  return true;
}

async function isWhole(path: string, sha256: string): Promise<boolean> {
  const hash = createHash('sha256');
  try {
    for await (const piece of createReadStream(path, { highWaterMark: BLOB_CHUNK_BYTES })) hash.update(piece);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
  return hash.digest('hex') === sha256;
}
