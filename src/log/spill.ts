import { createHash } from 'node:crypto';
import type { ContentBlock } from '../protocol/content.ts';
import { type AnyEvent, isKnown } from '../protocol/event.ts';
import type { BlobRef, Local } from '../protocol/record.ts';
import { AppendFailed } from './log.ts';
import type { Ready } from './serialize.ts';

/** Results are read back by event id, so a preview in the record is enough. */
export const RESULT_TEXT_BYTES = 32 * 1024;
/** What a person or the model said is sent to the model again and again: it stays whole unless it is enormous. */
export const MESSAGE_TEXT_BYTES = 1024 * 1024;
export const RAW_BYTES = 1024 * 1024;
/** The most one value may have; no string of the JavaScript engine can be longer. */
export const MAX_BLOB_BYTES = 512 * 1024 * 1024;

/** A preview keeps this much of both ends; what is left out is mostly in the middle of an output. */
const HEAD_BYTES = 20 * 1024;
const TAIL_BYTES = 10 * 1024;

export interface Blob {
  ref: BlobRef;
  bytes: Uint8Array;
}

/** Names bytes by what they are. Throws `AppendFailed` if there are too many of them. */
export function blobOf(bytes: Uint8Array, mediaType: string): Blob {
  if (bytes.length > MAX_BLOB_BYTES) {
    throw new AppendFailed(
      `A value of ${bytes.length} bytes is more than the ${MAX_BLOB_BYTES / 1024 / 1024} MiB that can be stored; nothing of it was written.`,
    );
  }
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { ref: { path: `blobs/${sha256}`, sha256, bytes: bytes.length, media_type: mediaType }, bytes };
}

/**
 * Takes what is too large for a record out of a draft. The draft itself is left as it is; one that has nothing
 * large is returned unchanged. Large text leaves a preview, images and documents become file references, a large
 * raw block becomes `{blob: sha256}`; `local.blobs` names all of them.
 */
export function spill(draft: Ready): { draft: Ready; blobs: Blob[] } {
  const blobs: Blob[] = [];
  const event = spillEvent(draft.event, blobs);
  const raw = spillRaw(draft.local?.raw, blobs);
  if (blobs.length === 0) return { draft, blobs };
  const refs = [...(draft.local?.blobs ?? []), ...blobs.map((blob) => blob.ref)];
  const unique = new Map(refs.map((ref) => [ref.sha256, ref]));
  const local: Local = { ...draft.local, blobs: [...unique.values()] };
  if (raw !== undefined) local.raw = raw;
  return { draft: { ...draft, event, local }, blobs };
}

function spillEvent(event: AnyEvent, blobs: Blob[]): AnyEvent {
  if (!isKnown(event) || !('content' in event) || !Array.isArray(event.content)) return event;
  const limit = event.type.endsWith('_result') ? RESULT_TEXT_BYTES : MESSAGE_TEXT_BYTES;
  const before = blobs.length;
  const content: ContentBlock[] = event.content;
  const spilled = content.map((block, index) => spillBlock(block, limit, blobs, `content.${index}`));
  return blobs.length === before ? event : ({ ...event, content: spilled } as AnyEvent);
}

function spillBlock(block: ContentBlock, limit: number, blobs: Blob[], field: string): ContentBlock {
  switch (block.type) {
    case 'text':
      return { ...block, text: spillText(block.text, limit, blobs) };
    case 'search_result':
      return { ...block, content: block.content.map((one) => ({ ...one, text: spillText(one.text, limit, blobs) })) };
    case 'image':
      if (block.source.type !== 'base64') return block;
      return { ...block, source: spillFile(fromBase64(block.source.data, field), block.source.media_type, blobs) };
    case 'document': {
      const { source } = block;
      if (source.type === 'base64') {
        return { ...block, source: spillFile(fromBase64(source.data, field), source.media_type, blobs) };
      }
      if (source.type === 'text' && isLonger(source.data, limit)) {
        return { ...block, source: spillFile(Buffer.from(source.data), source.media_type, blobs) };
      }
      return block;
    }
    case 'redacted':
      return block;
  }
}

function spillText(text: string, limit: number, blobs: Blob[]): string {
  if (!isLonger(text, limit)) return text;
  const bytes = Buffer.from(text);
  const blob = blobOf(bytes, 'text/plain');
  blobs.push(blob);
  const head = bytes.subarray(0, boundary(bytes, HEAD_BYTES));
  const tail = bytes.subarray(boundary(bytes, bytes.length - TAIL_BYTES));
  const left = bytes.length - head.length - tail.length;
  return `${head.toString()}\n[… ${left} of ${bytes.length} bytes are left out here; ${blob.ref.path} has all of them …]\n${tail.toString()}`;
}

function spillFile(bytes: Uint8Array, mediaType: string, blobs: Blob[]): { type: 'file'; file_id: string } {
  const blob = blobOf(bytes, mediaType);
  blobs.push(blob);
  return { type: 'file', file_id: `file_${blob.ref.sha256}` };
}

function spillRaw(raw: unknown, blobs: Blob[]): unknown {
  if (typeof raw !== 'object' || raw === null) return raw;
  const json = JSON.stringify(raw);
  if (!isLonger(json, RAW_BYTES)) return raw;
  const blob = blobOf(Buffer.from(json), 'application/json');
  blobs.push(blob);
  return { blob: blob.ref.sha256 };
}

/** A character is at most three bytes of UTF-8, so short text needs no counting. */
const isLonger = (text: string, bytes: number): boolean => text.length * 3 > bytes && Buffer.byteLength(text) > bytes;

/** The start of the character that holds byte `at`, so that a cut never splits one. */
function boundary(bytes: Uint8Array, at: number): number {
  let cut = at;
  while (cut > 0 && ((bytes[cut] ?? 0) & 0xc0) === 0x80) cut -= 1;
  return cut;
}

/** Node skips what is no base64; we would then store something else than we were given, so we refuse. */
function fromBase64(data: string, field: string): Uint8Array {
  const digits = data.replace(/[\s=]/g, '');
  const bytes = Buffer.from(digits, 'base64');
  if (bytes.length !== Math.floor((digits.length * 3) / 4)) {
    throw new AppendFailed(`An event was not stored because its field ${field}.source.data is not base64.`);
  }
  return bytes;
}
