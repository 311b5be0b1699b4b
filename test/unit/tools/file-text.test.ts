import { deflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { readText } from '../../../src/tools/detect.ts';
import { imageSize } from '../../../src/tools/image-size.ts';
import { nearMiss } from '../../../src/tools/near-miss.ts';
import { newFile, rewrite } from '../../../src/tools/rewrite.ts';
import { encodingNotes, READ_CAP, shownLines } from '../../../src/tools/text-lines.ts';

const range = (first: number, last: number) => ({ first, last, asked: true });
const all = { first: 1, last: 0, asked: false };
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

describe('lines that are shown', () => {
  const shown = (whole: string, of = all) => shownLines('f', whole, Buffer.byteLength(whole), of, []);

  it('are the whole text where no range is asked for', () => {
    expect(shown('a\nb\n')).toBe('a\nb\n');
    expect(shown('a\r\nb')).toBe('a\nb');
    expect(shown('')).toBe('f is empty.');
  });

  it('are those of the range, both ends included', () => {
    expect(shown('a\nb\nc\n', range(2, 2))).toBe('b\n[The file has 3 lines.]');
    expect(shown('a\nb\nc', range(2, 0))).toBe('b\nc\n[The file has 3 lines.]');
    expect(shown('a\nb\nc', range(2, 99))).toBe('b\nc\n[The file has 3 lines.]');
    expect(shown('a', range(1, 1))).toBe('a\n[The file has one line.]');
    expect(shown('a\n', range(2, 0))).toBe('f has no line 2: it has one line.');
    expect(shown('a\nb\n\n', range(3, 3))).toBe('\n[The file has 3 lines.]');
  });

  it('are cut at a line’s end, with the place to go on from', () => {
    const whole = `${'x'.repeat(99)}\n`.repeat(5000);
    const first = shown(whole);
    const next = Number(/view_range \[(\d+), 0\]/.exec(first)?.[1]);
    expect(next).toBe(Math.floor(READ_CAP / 100) + 1);
    expect(shown(whole, range(next, 0)).startsWith('x'.repeat(99))).toBe(true);
    expect(shown('y'.repeat(READ_CAP * 2))).toMatch(/y\n\[This is 256 KiB of 512 KiB, all in one line\./);
  });

  it('come with what is known of their encoding, unless it is UTF-8', () => {
    const notes = (bytes: Uint8Array, hint?: string) => {
      const file = readText(bytes, hint);
      return file ? encodingNotes(file) : [];
    };
    expect(notes(Buffer.from('é'))).toEqual([]);
    expect(notes(Buffer.from('e'), 'gbk')).toEqual([]);
    expect(notes(Buffer.from('\ufeffé', 'utf16le'))).toEqual([expect.stringContaining('is in UTF-16 LE')]);
    expect(notes(Buffer.from('caf\xe9', 'latin1'))).toEqual([expect.stringContaining('encoding is not known')]);
  });
});

describe('a file that is written anew', () => {
  it('gets what the person’s editor would write, if that has all the characters', () => {
    expect(newFile('é\n', undefined)).toEqual({ bytes: new Uint8Array(Buffer.from('é\n')), notes: [] });
    expect(newFile('é', 'utf8').notes).toEqual([]);
    expect(newFile('é', 'windows1252')).toEqual({ bytes: Uint8Array.of(0xe9), notes: ['in Windows-1252'] });
    expect(text(newFile('日', 'windows1252').bytes)).toBe('日');
    expect([...newFile('a', 'utf16be').bytes]).toEqual([0xfe, 0xff, 0, 0x61]);
    expect(newFile('a', 'no such thing').bytes).toEqual(Uint8Array.of(0x61));
  });

  it('keeps its own line endings only where the text has none of its own', () => {
    const crlf = Buffer.from('a\r\nb\r\n');
    expect(text(rewrite(crlf, 'x\ny\n', undefined).bytes)).toBe('x\r\ny\r\n');
    expect(text(rewrite(crlf, 'x\r\ny\r\n', undefined).bytes)).toBe('x\r\ny\r\n');
    const mixed = rewrite(crlf, 'x\r\ny\nz\n', undefined);
    expect([text(mixed.bytes), mixed.notes]).toEqual(['x\r\ny\nz\n', ['its line endings were all CRLF']]);
    expect(text(rewrite(Buffer.from('a\nb\n'), 'x\r\n', undefined).bytes)).toBe('x\r\n');
    expect(text(rewrite(Buffer.from('\ufeffa'), '\ufeffb', undefined).bytes)).toBe('\ufeffb');
  });
});

describe('the place an edit looked for', () => {
  it('is told by the lines that come closest, the likeliest of several', () => {
    const file = 'function a() {\n  return 1;\n}\nfunction b() {\n  return  2;\n}\n';
    expect(nearMiss(file, '}\nfunction b() {\n  return 2;')).toContain('stands at line 3');
    expect(nearMiss(file, 'return 2;\n}')).toContain('5:   return  2;\n6: }');
    expect(nearMiss(file, ' \n ')).toContain('nothing but white space');
    expect(nearMiss('x'.repeat(3_000_000), 'xyz abc')).toContain('nor any line like it');
  });
});

describe('the size of an image', () => {
  const chunk = (name: string, data: Buffer) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(data.length);
    return Buffer.concat([length, Buffer.from(name), data, Buffer.alloc(4)]);
  };
  const header = Buffer.from('0000012c000000c80800000000', 'hex');
  const png = Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.alloc(200 * 301))),
  ]);
  const jpeg = Buffer.from('ffd8ffe000104a46494600010100000100010000ffffc2001108006400c803012200021101031101', 'hex');
  const webp = (kind: string, rest: string) =>
    Buffer.concat([Buffer.from(`RIFF\x20\0\0\0WEBP${kind}\x20\0\0\0`, 'latin1'), Buffer.from(rest, 'hex')]);

  it.each([
    ['image/png', png, 300, 200],
    ['image/gif', Buffer.from('474946383961c8006400800000', 'hex'), 200, 100],
    ['image/jpeg', jpeg, 200, 100],
    ['image/webp', webp('VP8 ', '3001009d012ac800640002003425a400'), 200, 100],
    ['image/webp', webp('VP8L', '2fc7c01800000000000000000000'), 200, 100],
    ['image/webp', webp('VP8X', '00000000c70000630000000000000000'), 200, 100],
  ])('of %s is read from its header', (type, bytes, width, height) => {
    expect(imageSize(bytes, type)).toEqual({ width, height });
    expect(imageSize(bytes.subarray(0, 12), type)).toBeNull();
  });
});
