import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { messageOf } from '../../protocol/errors.ts';
import type { BlobRef, LogRecord } from '../../protocol/record.ts';
import { LineChecks } from '../check-lines.ts';
import { BlobDamaged, type SessionReading } from '../log.ts';
import { Scanner } from '../scan.ts';
import { MAX_RECORD_BYTES } from '../serialize.ts';
import { Slices } from '../slices.ts';
import { EXPORT_VERSION, Header, NoExport } from './format.ts';
import { RedactedChecks } from './redacted-checks.ts';

const CHUNK_BYTES = 256 * 1024;
/** A multiple of four, so that a piece of base64 can be read by itself. */
const BASE64_CHUNK = 256 * 1024;
/** A header, and what stands before a blob's base64, is shorter. */
const HEAD_BYTES = 64 * 1024;
/** Problems told one by one. */
const MOST_TOLD = 20;
const NEWLINE = 0x0a;
const BLOB_END = '"}}\n';

/** Where in the file a blob's base64 is. */
interface BlobPlace {
  offset: number;
  bytes: number;
}

/** A session in an exported file, checked. It is never written to, and nothing of it is kept elsewhere. */
export interface ExportFile {
  header: Header;
  reading: SessionReading;
  /** What does not hold, a clause each; empty if the file is what was exported. */
  problems: string[];
  /** Throws `BlobDamaged` if it is not there or not what its name says. */
  readBlob(blob: BlobRef): Promise<Uint8Array>;
}

/**
 * Opens an exported session and checks all of it: every line's hash, the chain, the head, every blob.
 * What does not hold is in `problems`; what can be read is given all the same.
 * @throws NoExport if the file can't be read, is no export, or is one of a newer version
 */
export async function openExport(path: string): Promise<ExportFile> {
  let file: FileHandle;
  try {
    file = await open(path, 'r');
  } catch (error) {
    throw new NoExport(`${path} can't be opened: ${messageOf(error)}.`, { cause: error });
  }
  try {
    const { header, end } = await readHeader(file, path);
    const problems: string[] = [];
    const log = await readLines(file, header, end, problems);
    const blobs = await readBlobs(file, log.end, problems);
    compareHead(header, log.reading, problems);
    for (const sha256 of log.named) {
      if (!blobs.has(sha256)) problems.push(`the blob ${sha256} that a record names is not in the file, or not whole`);
    }
    if (problems.length > MOST_TOLD) {
      const more = problems.length - MOST_TOLD;
      problems.splice(MOST_TOLD, more, `and ${more} more`);
    }
    return { header, reading: log.reading, problems, readBlob: (blob) => readBlob(path, blob, blobs.get(blob.sha256)) };
  } finally {
    await file.close();
  }
}

async function readHeader(file: FileHandle, path: string): Promise<{ header: Header; end: number }> {
  const start = await readAt(file, 0, HEAD_BYTES);
  const end = start.indexOf(NEWLINE);
  const none = `${path} is no exported session: its first line is not the header that Drover writes.`;
  if (end < 0) throw new NoExport(none);
  let value: unknown;
  try {
    value = JSON.parse(start.toString('utf8', 0, end));
  } catch (error) {
    throw new NoExport(none, { cause: error });
  }
  if (
    typeof value === 'object' &&
    value !== null &&
    'drover_export' in value &&
    Number(value.drover_export) > EXPORT_VERSION
  )
    throw new NoExport(`${path} was exported by a newer Drover; update the extension to open it.`);
  const header = Header.safeParse(value);
  if (!header.success) throw new NoExport(none, { cause: header.error });
  return { header: header.data, end: end + 1 };
}

interface Lines {
  reading: SessionReading;
  /** Hashes of the blobs that records name. */
  named: Iterable<string>;
  /** Where the blobs begin. */
  end: number;
}

async function readLines(file: FileHandle, header: Header, start: number, problems: string[]): Promise<Lines> {
  const end = start + header.log_bytes;
  const { size } = await file.stat();
  if (size < end) problems.push(`the file is cut off: ${end - size} bytes of the log are missing`);
  const lines = eachLine(file, start, Math.min(end, size));
  const read = header.redaction ? await redactedLines(lines, header, problems) : await logLines(lines, problems);
  const ended = header.log_bytes === 0 || (await readAt(file, end - 1, 1))[0] === NEWLINE;
  return { ...read, end: ended ? end : end + 1 };
}

/** Lines of a log as they were: read as any log is, and held to what a writer would have written. */
async function logLines(lines: AsyncIterable<Line>, problems: string[]): Promise<Omit<Lines, 'end'>> {
  const scanner = new Scanner();
  const checks = new LineChecks(null);
  for await (const { bytes, offset, ended } of lines) {
    scanner.push(bytes);
    checks.check(ended ? bytes.subarray(0, -1) : bytes, offset, ended);
  }
  scanner.settle();
  // The header is line 1.
  for (const { line, seq, reason } of checks.wrong.listed)
    problems.push(`${at(line === null ? null : line + 1, seq)}: ${reason}`);
  if (checks.wrong.count > checks.wrong.listed.length) problems.push('there are more lines like these');
  const { damage, stale, newer } = scanner;
  const tornBytes = scanner.offset - scanner.wholeEnd;
  return { reading: { records: scanner.take(), damage, tornBytes, stale, newer }, named: checks.blobs.keys() };
}

async function redactedLines(
  lines: AsyncIterable<Line>,
  header: Header,
  problems: string[],
): Promise<Omit<Lines, 'end'>> {
  const checks = new RedactedChecks();
  for await (const { bytes, ended } of lines) checks.check(ended ? bytes.subarray(0, -1) : bytes);
  problems.push(...checks.problems);
  const declared = header.redaction?.records ?? 0;
  if (checks.redacted !== declared)
    problems.push(`${checks.redacted} records say that they are redacted, and the header says ${declared}`);
  const reading = { records: checks.records, damage: [], tornBytes: 0, stale: 0, newer: checks.newer };
  return { reading, named: checks.blobs };
}

function compareHead(header: Header, { records }: SessionReading, problems: string[]): void {
  const last: LogRecord | undefined = records.at(-1);
  if (last?.seq === header.head.seq && last.hash === header.head.hash) return;
  const found = last ? `record ${last.seq}, ${last.hash}` : 'no record at all';
  problems.push(`the last record should be ${header.head.seq}, ${header.head.hash}, and is ${found}`);
}

interface Line {
  /** With its newline, if it has one. */
  bytes: Buffer;
  /** From the start of the lines. */
  offset: number;
  ended: boolean;
}

async function* eachLine(file: FileHandle, start: number, end: number): AsyncGenerator<Line> {
  const slices = new Slices();
  let carry = Buffer.alloc(0);
  let offset = 0;
  for (let at = start; at < end; ) {
    const chunk = await readAt(file, at, Math.min(CHUNK_BYTES, end - at));
    if (chunk.length === 0) break;
    at += chunk.length;
    let bytes = carry.length === 0 ? chunk : Buffer.concat([carry, chunk]);
    for (let newline = bytes.indexOf(NEWLINE); newline >= 0; newline = bytes.indexOf(NEWLINE)) {
      yield { bytes: bytes.subarray(0, newline + 1), offset, ended: true };
      offset += newline + 1;
      bytes = bytes.subarray(newline + 1);
      if (slices.due) await slices.pause();
    }
    carry = Buffer.from(bytes);
    if (carry.length > 2 * MAX_RECORD_BYTES) throw new NoExport('A line of the log is longer than any record can be.');
  }
  if (carry.length > 0) yield { bytes: carry, offset, ended: false };
}

/** Finds the blobs and hashes them; only whole ones are given. */
async function readBlobs(file: FileHandle, start: number, problems: string[]): Promise<Map<string, BlobPlace>> {
  const blobs = new Map<string, BlobPlace>();
  const { size } = await file.stat();
  for (let at = start; at < size; ) {
    const head = await readAt(file, at, HEAD_BYTES);
    const found = blobHead(head);
    const offset = at + (found?.length ?? 0);
    const end = found ? offset + base64Length(found.bytes) : at;
    const isBlob = found && (await readAt(file, end, BLOB_END.length)).toString() === BLOB_END;
    if (!isBlob) {
      problems.push(`byte ${at}: no blob stands here, or not all of it; what follows was not read`);
      break;
    }
    if ((await hashBase64(file, offset, end)) === found.sha256) blobs.set(found.sha256, { offset, bytes: found.bytes });
    else problems.push(`the blob ${found.sha256} was changed: its bytes are not those its name stands for`);
    at = end + BLOB_END.length;
  }
  return blobs;
}

const base64Length = (bytes: number): number => Math.ceil(bytes / 3) * 4;

function blobHead(bytes: Buffer): { sha256: string; bytes: number; length: number } | null {
  const mark = bytes.indexOf(',"base64":"');
  if (mark < 0) return null;
  try {
    const { blob } = JSON.parse(`${bytes.toString('utf8', 0, mark)}}}`);
    const fits = /^[0-9a-f]{64}$/.test(blob.sha256) && Number.isSafeInteger(blob.bytes) && blob.bytes >= 0;
    return fits ? { sha256: blob.sha256, bytes: blob.bytes, length: mark + ',"base64":"'.length } : null;
  } catch {
    return null;
  }
}

async function hashBase64(file: FileHandle, start: number, end: number): Promise<string> {
  const hash = createHash('sha256');
  for (let at = start; at < end; at += BASE64_CHUNK) {
    const piece = await readAt(file, at, Math.min(BASE64_CHUNK, end - at));
    hash.update(Buffer.from(piece.toString('latin1'), 'base64'));
  }
  return hash.digest('hex');
}

async function readBlob(path: string, blob: BlobRef, place: BlobPlace | undefined): Promise<Uint8Array> {
  if (!place) throw new BlobDamaged(blob);
  const file = await open(path, 'r');
  try {
    const base64 = await readAt(file, place.offset, base64Length(place.bytes));
    const bytes = Buffer.from(base64.toString('latin1'), 'base64');
    // The file may have been changed since it was opened.
    if (createHash('sha256').update(bytes).digest('hex') !== blob.sha256) throw new BlobDamaged(blob);
    return bytes;
  } finally {
    await file.close();
  }
}

/** Fewer bytes where the file ends. */
async function readAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let read = 0;
  while (read < length) {
    const { bytesRead } = await file.read(buffer, read, length - read, at + read);
    if (bytesRead === 0) break;
    read += bytesRead;
  }
  return buffer.subarray(0, read);
}

function at(line: number | null, seq: number | null): string {
  const where = line === null ? 'the log' : `line ${line}`;
  return seq === null ? where : `${where}, record ${seq}`;
}
