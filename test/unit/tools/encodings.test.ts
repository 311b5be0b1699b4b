import { isAscii, isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readText } from '../../../src/tools/detect.ts';
import { encodingNamed } from '../../../src/tools/encodings.ts';
import { toLf } from '../../../src/tools/lf-view.ts';
import { splice } from '../../../src/tools/splice.ts';

/** An alphabet for each encoding, and whether a file begins with a byte order mark. */
const ENCODINGS: [name: string, letters: string, mark?: boolean][] = [
  ['utf8', 'aé日😀\u0301ß'],
  ['utf8', 'aé日😀', true],
  ['utf16le', 'aé日😀', true],
  ['utf16be', 'aé日😀', true],
  ['iso88591', 'aéüß¡ÿ'],
  ['windows1252', 'aé€“”žŸ'],
  ['windows1250', 'aąęłž'],
  ['windows1251', 'aЖщ№ё'],
  ['iso88592', 'aąęłž'],
  ['iso885915', 'aé€œ'],
  ['koi8r', 'aЖщё─'],
  ['cp866', 'aЖщё'],
  ['macroman', 'aéü≠'],
  ['shiftjis', 'a日本語ｱｲ表ソ①\\'],
  ['eucjp', 'a日本語ｱｲ'],
  ['gbk', 'a中文读€镕'],
  ['gb18030', 'a中文读'],
  ['big5hkscs', 'a中文讀許功'],
  ['euckr', 'a한국어'],
];

const bytesOf = (name: string, text: string): Uint8Array => {
  const bytes = encodingNamed(name)?.encode(text);
  if (!(bytes instanceof Uint8Array)) throw new Error(`${name} can't write ${text}`);
  return bytes;
};
const file = (name: string, mark: boolean | undefined, text: string) => bytesOf(name, mark ? `\ufeff${text}` : text);
/** A few characters of another encoding may by chance be good UTF-8: then nobody can tell. */
const likeUtf8 = (name: string, raw: Uint8Array): boolean => name !== 'utf8' && isUtf8(raw) && !isAscii(raw);
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

describe.each(ENCODINGS)('a file in %s, %s', (name, letters, mark) => {
  const unit = fc.constantFrom(...letters, ' ', '\r\n', '\n', 'x');
  const text = fc.string({ unit, maxLength: 40 });

  it('reads as what was written', () => {
    fc.assert(
      fc.property(text, (before) => {
        const raw = file(name, mark, before);
        fc.pre(!likeUtf8(name, raw));
        const read = readText(raw, name);
        expect(read?.text).toBe(before);
        expect(read?.bom.length).toBe(mark ? bytesOf(name, '\ufeff').length : 0);
      }),
    );
  });

  it('keeps every byte outside an edit', () => {
    fc.assert(
      fc.property(text, text, text, fc.nat(), fc.nat(), (before, after, fresh, from, length) => {
        const middle = `NEEDLE${letters}`;
        const whole = before + middle + after;
        fc.pre(!fresh.includes('\n') && !(before.endsWith('\r') || after.startsWith('\n')));
        const raw = file(name, mark, whole);
        fc.pre(!likeUtf8(name, raw));
        const read = readText(raw, name);
        if (!read) throw new Error('not text');
        // Any part of what is there once, however it lies between the characters.
        const characters = [...`${before}${middle}${after}`];
        const start = Math.min(from % characters.length, [...before].length);
        const end = Math.max(start + (length % characters.length), [...before].length + [...middle].length);
        const old = characters.slice(start, end).join('');
        fc.pre(occursOnce(whole, old) && old !== fresh && !/^\n|\r$/.test(old));
        const { bytes } = splice(raw, read, { oldString: old, newString: fresh, replaceAll: false });
        const at = whole.indexOf(old);
        expect(hex(bytes)).toBe(hex(file(name, mark, whole.slice(0, at) + fresh + whole.slice(at + old.length))));
        const skipped = file(name, mark, whole.slice(0, at)).length;
        expect(hex(bytes.subarray(0, skipped))).toBe(hex(raw.subarray(0, skipped)));
        const kept = bytesOf(name, whole.slice(at + old.length)).length;
        expect(hex(bytes.subarray(bytes.length - kept))).toBe(hex(raw.subarray(raw.length - kept)));
      }),
    );
  });
});

/** In the view the edit is matched on. */
const occursOnce = (text: string, part: string): boolean => {
  const [whole, wanted] = [toLf(text), toLf(part)];
  return whole.indexOf(wanted) === whole.lastIndexOf(wanted);
};

describe('every edit of any text', () => {
  const unit = fc.constantFrom('a', 'b', 'é', '日', '😀', '\n', '\r\n', ' ');
  const text = fc.string({ unit, minLength: 1, maxLength: 30 });

  it('leaves line endings as they are where the old and the new text agree', () => {
    fc.assert(
      fc.property(text, text, text, (before, shared, after) => {
        const whole = `${before}[${shared}|${shared}]${after}`;
        const raw = Buffer.from(whole);
        const read = readText(raw);
        if (!read) throw new Error('not text');
        const oldString = toLf(`[${shared}|${shared}]`);
        const newString = oldString.replace('|', '!');
        const { bytes } = splice(raw, read, { oldString, newString, replaceAll: false });
        expect(Buffer.from(bytes).toString()).toBe(whole.replace('|', '!'));
      }),
    );
  });

  it('replaces each of many, and nothing else', () => {
    fc.assert(
      fc.property(fc.array(text, { minLength: 2, maxLength: 6 }), (parts) => {
        const whole = parts.join('<N>');
        const raw = Buffer.from(whole);
        const read = readText(raw);
        if (!read) throw new Error('not text');
        const { bytes, lines } = splice(raw, read, { oldString: '<N>', newString: '<日😀>', replaceAll: true });
        expect(Buffer.from(bytes).toString()).toBe(parts.join('<日😀>'));
        expect(lines).toHaveLength(parts.length - 1);
      }),
    );
  });
});

describe('what bytes are taken for', () => {
  const told = (bytes: Uint8Array, hint?: string) => {
    const read = readText(bytes, hint);
    return read && [read.encoding.name, read.how];
  };

  it('is UTF-8 where they are, whatever the editor would think', () => {
    expect(told(Buffer.from('naïve 日本'), 'windows1252')).toEqual(['UTF-8', 'certain']);
    expect(told(Buffer.from('plain'))).toEqual(['UTF-8', 'certain']);
  });

  it('is the editor’s encoding for plain ASCII, so that what is added fits the other files', () => {
    expect(told(Buffer.from('plain'), 'shiftjis')).toEqual(['Shift_JIS', 'hint']);
    expect(told(Buffer.from('plain'), 'cp437')).toEqual(['UTF-8', 'certain']);
  });

  it('is the editor’s encoding where they are text in it, and otherwise not', () => {
    expect(told(bytesOf('gbk', '读取'), 'gbk')).toEqual(['GBK', 'hint']);
    expect(told(bytesOf('windows1252', 'caf\xe9 '), 'shiftjis')?.[0]).not.toBe('UTF-8');
    expect(told(Uint8Array.of(0x61, 0x81, 0x20), 'gbk')).toEqual(['Windows-1252', 'unknown']);
  });

  it('is UTF-16 also without a byte order mark', () => {
    expect(told(Buffer.from('hello, wörld', 'utf16le'))).toEqual(['UTF-16 LE', 'certain']);
    expect(told(Buffer.from('hello, wörld', 'utf16le').swap16())).toEqual(['UTF-16 BE', 'certain']);
    expect(told(new Uint8Array(Uint16Array.from({ length: 40 }, (_, i) => i % 9).buffer))).toBeNull();
  });

  it('is guessed where there is enough to go by', () => {
    const japanese = 'こんにちは、世界。これはテストです。\n';
    expect(told(bytesOf('shiftjis', japanese))).toEqual(['Shift_JIS', 'guess']);
    expect(told(bytesOf('eucjp', japanese))).toEqual(['EUC-JP', 'guess']);
    expect(told(bytesOf('gbk', '你好，世界。这是一个测试文件，用来检测编码。'))).toEqual(['GBK', 'guess']);
    expect(told(bytesOf('big5', '你好，世界。這是一個測試檔案，用來偵測編碼。'))).toEqual(['Big5', 'guess']);
    expect(told(bytesOf('euckr', '안녕하세요 세계. 이것은 인코딩을 확인하는 시험 파일입니다.'))).toEqual([
      'EUC-KR',
      'guess',
    ]);
    expect(told(bytesOf('windows1251', 'Привет, мир. Это проверка кодировки файла.\n'))).toEqual([
      'Windows-1251',
      'guess',
    ]);
    // One foreign comment in a long program counts by itself, not against all the ASCII around it.
    const program = Buffer.concat([Buffer.from('const a = 1;\n'.repeat(2000)), bytesOf('shiftjis', `// ${japanese}`)]);
    expect(told(program)).toEqual(['Shift_JIS', 'guess']);
  });

  it('is not guessed from a word or two', () => {
    expect(told(bytesOf('big5', '中文'))).toEqual(['Windows-1252', 'unknown']);
    expect(told(bytesOf('iso88591', 'café\n'))).toEqual(['Windows-1252', 'unknown']);
  });

  it('is no text where there are NULs or many control characters', () => {
    expect(told(Buffer.from('a\0b'))).toBeNull();
    expect(told(Uint8Array.from({ length: 200 }, (_, i) => (i * 37) % 32))).toBeNull();
    expect(told(Buffer.from('\x1b[31mred\x1b[0m\tx\r\n'))).toEqual(['UTF-8', 'certain']);
  });
});

describe('what an encoding does not have', () => {
  const edit = (raw: Uint8Array, hint: string, newString: string) => {
    const read = readText(raw, hint);
    if (!read) throw new Error('not text');
    return () => splice(raw, read, { oldString: 'old', newString, replaceAll: false });
  };

  it.each([
    ['gbk', '读 old', '😀', /GBK, which has no "😀"/],
    ['iso88591', 'é old', '€', /Latin-1, which has no "€"/],
    ['windows1252', '€ old', '日', /Windows-1252, which has no "日"/],
    ['shiftjis', '日 old', 'é', /Shift_JIS, which has no "é"/],
    ['koi8r', 'Ж old', 'é', /KOI8-R, which has no "é"/],
  ])('is refused in %s, in words', (name, before, fresh, words) => {
    expect(edit(bytesOf(name, before), name, fresh)).toThrow(words);
  });

  it('is refused where half of a character is to be written', () => {
    expect(edit(bytesOf('utf8', 'old'), 'utf8', 'x\ud800')).toThrow(/half of a character/);
  });
});
