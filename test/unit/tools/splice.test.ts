import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readText, type TextFile } from '../../../src/tools/detect.ts';
import { type Edit, EditProblem, splice } from '../../../src/tools/splice.ts';

const raw = (text: string) => new Uint8Array(Buffer.from(text, 'latin1'));
const back = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1');
const fileOf = (bytes: Uint8Array, hint?: string): TextFile => {
  const file = readText(bytes, hint);
  if (!file) throw new Error('not text');
  return file;
};
const spliceOf = (bytes: Uint8Array, edit: Edit, hint?: string) => splice(bytes, fileOf(bytes, hint), edit);
const edit = (before: string, oldString: string, newString: string, replaceAll = false) =>
  back(spliceOf(raw(before), { oldString, newString, replaceAll }).bytes);
const problem = (before: string, oldString: string, newString: string) => {
  try {
    edit(before, oldString, newString);
  } catch (error) {
    if (error instanceof EditProblem) return error.message;
    throw error;
  }
  return 'no problem';
};

describe('splice', () => {
  it('gives new lines the ending of the lines they replace', () => {
    expect(edit('a\r\nb\r\nc\r\n', 'b', 'x\ny')).toBe('a\r\nx\r\ny\r\nc\r\n');
    expect(edit('a\nb\nc\n', 'b', 'x\r\ny')).toBe('a\nx\ny\nc\n');
    expect(edit('a\r\nb\nc\n', 'a\nb', 'x\ny')).toBe('x\r\ny\nc\n');
  });

  it('keeps a carriage return that belongs to no line ending', () => {
    expect(edit('a\rb\nc\n', 'c', 'd')).toBe('a\rb\nd\n');
  });

  it('removes a whole line with its ending', () => {
    expect(edit('a\r\nb\r\nc', 'b\n', '')).toBe('a\r\nc');
    expect(edit('a\r\nb\r\nc', '\nb', '')).toBe('a\r\nc');
  });

  it('replaces all, and tells the lines', () => {
    const result = spliceOf(raw('x\r\nx\r\ny x'), { oldString: 'x', newString: 'zz', replaceAll: true });
    expect(back(result.bytes)).toBe('zz\r\nzz\r\ny zz');
    expect(result.lines).toEqual([1, 2, 3]);
  });

  it('writes into a file that is not UTF-8 only what stood there or is ASCII', () => {
    expect(edit('caf\xe9 = 1\n', 'café = 1', 'café = 2')).toBe('caf\xe9 = 2\n');
    expect(problem('caf\xe9\n', 'caf', 'naïve')).toMatch(/"ï" in new_string could not be written/);
    expect(problem('caf\xe9\n', 'caf', '日本')).toMatch(/"日" in new_string/);
    // Bytes of a double-byte encoding stay as they are around an ASCII edit.
    expect(edit('\xc4\xe3\xba\xc3\xff x\n', 'x', 'y')).toBe('\xc4\xe3\xba\xc3\xff y\n');
  });

  it('says how many matches there are, and shows the nearest line where there is none', () => {
    expect(problem('a\na\n', 'a', 'b')).toMatch(/occurs 2 times, at lines 1, 2/);
    expect(problem('const total = sum(items)\n', 'const total = sum(item)', 'x')).toMatch(
      /1: const total = sum\(items\)/,
    );
    expect(problem('  if (x) {\n    y()\n', 'if (x) {\n  y()', 'z')).toMatch(
      /stands at line 1[\s\S]*1: {3}if \(x\) \{\n2: {5}y\(\)/,
    );
    expect(problem('a\n', 'zzz', 'b')).toMatch(/nor any line like it/);
    expect(problem('a\n', 'a', 'a')).toMatch(/the same/);
  });

  it('touches no byte outside the match, in any file', () => {
    const piece = fc.uint8Array({ maxLength: 60 }).map((bytes) => back(bytes).replaceAll('NEEDLE', ''));
    fc.assert(
      fc.property(piece, piece, (before, after) => {
        const text = `${before}NEEDLE${after}`;
        fc.pre(text.indexOf('NEEDLE') === text.lastIndexOf('NEEDLE') && readText(raw(text)) !== null);
        expect(edit(text, 'NEEDLE', 'thread')).toBe(`${before}thread${after}`);
      }),
    );
  });

  it('finds with LF what stands with CRLF, wherever it stands', () => {
    const line = fc.string({ unit: fc.constantFrom('a', 'b', ' '), maxLength: 5 });
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 8 }), fc.nat(7), (lines, pick) => {
        const at = pick % lines.length;
        const all = lines.map((text, i) => (i === at ? 'NEEDLE\nEYE' : text));
        const crlf = all.join('\n').replaceAll('\n', '\r\n');
        const want = lines
          .map((text, i) => (i === at ? 'x\ny\nz' : text))
          .join('\n')
          .replaceAll('\n', '\r\n');
        expect(edit(crlf, 'NEEDLE\nEYE', 'x\ny\nz')).toBe(want);
      }),
    );
  });
});
