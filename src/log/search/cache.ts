import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SessionId } from '../../protocol/ids.ts';
import { Block } from './block.ts';
import { cacheFolder } from './cache-place.ts';
import type { Indexed } from './session-index.ts';

/** Bytes that every number array begins at a multiple of. */
const ALIGN = 8;
/** What a file begins with: the SHA-256 of the rest. */
const SUM_BYTES = 32;

/** The arrays of a block, in the order of the file. */
const NUMBERS = [
  ['seqs', Uint32Array],
  ['starts', Float64Array],
  ['lengths', Uint32Array],
  ['times', Float64Array],
  ['wordStarts', Uint32Array],
  ['entryStarts', Uint32Array],
  ['entries', Uint16Array],
] as const;

/**
 * Keeps the index of each session in a file of its own, replaced whole. Only a help: what is missing, damaged or of
 * another version is built anew, and a folder that can't be written to has none.
 */
export class Cache {
  readonly #folder: string;

  /** @param root absolute path of the `.drover` folder */
  constructor(root: string) {
    this.#folder = cacheFolder(root);
  }

  async read(id: SessionId): Promise<Indexed | null> {
    try {
      return decode(await readFile(join(this.#folder, id)));
    } catch {
      return null;
    }
  }

  async write(id: SessionId, indexed: Indexed): Promise<void> {
    const draft = join(this.#folder, `${id}.${process.pid}.tmp`);
    try {
      await mkdir(this.#folder, { recursive: true });
      await writeFile(draft, encode(indexed));
      await rename(draft, join(this.#folder, id));
    } catch {
      await rm(draft, { force: true }).catch(() => undefined);
    }
  }

  /** Removes what belongs to no session. */
  async keepOnly(ids: ReadonlySet<string>): Promise<void> {
    const names = await readdir(this.#folder).catch(() => []);
    const gone = names.filter((name) => !ids.has(name.split('.')[0] ?? ''));
    await Promise.all(gone.map((name) => rm(join(this.#folder, name), { force: true }).catch(() => undefined)));
  }
}

function encode({ blocks, ...rest }: Indexed): Buffer {
  const parts: Buffer[] = [];
  const sizes = blocks.map((block) => {
    const words = Buffer.from(block.words);
    const arrays = NUMBERS.map(([name]) => block[name]);
    parts.push(
      padded(words),
      ...arrays.map((array) => padded(Buffer.from(array.buffer, array.byteOffset, array.byteLength))),
    );
    return { words: words.length, numbers: arrays.map((array) => array.length) };
  });
  const head = Buffer.from(JSON.stringify({ ...rest, blocks: sizes }));
  const length = Buffer.alloc(ALIGN);
  length.writeUInt32LE(head.length);
  const file = Buffer.concat([length, padded(head), ...parts]);
  return Buffer.concat([sha256(file), file]);
}

/** null if it is not what `encode` made; then it may throw, too. */
function decode(bytes: Buffer): Indexed | null {
  const file = bytes.subarray(SUM_BYTES);
  if (!sha256(file).equals(bytes.subarray(0, SUM_BYTES))) return null;
  const length = file.readUInt32LE();
  const { blocks: sizes, ...rest } = JSON.parse(file.toString('utf8', ALIGN, ALIGN + length));
  let at = ALIGN + aligned(length);
  const take = (bytes: number): Buffer => {
    const part = file.subarray(at, at + bytes);
    at += aligned(bytes);
    return part;
  };
  const blocks = sizes.map((size: { words: number; numbers: number[] }) => {
    const words = take(size.words).toString();
    const arrays = NUMBERS.map(([name, Type], n) => {
      const bytes = take((size.numbers[n] ?? 0) * Type.BYTES_PER_ELEMENT);
      return [name, new Type(Uint8Array.from(bytes).buffer)];
    });
    return new Block({ words, ...Object.fromEntries(arrays) });
  });
  return { ...rest, blocks };
}

const aligned = (bytes: number): number => Math.ceil(bytes / ALIGN) * ALIGN;
const padded = (bytes: Buffer): Buffer => Buffer.concat([bytes], aligned(bytes.length));
const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();
