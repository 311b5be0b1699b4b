import { describe, expect, it } from 'vitest';
import { plainText } from '../../../src/protocol/content.ts';
import { bashOutcome } from '../../../src/tools/bash-output.ts';
import { capLines, capText } from '../../../src/tools/cap.ts';
import { globPattern } from '../../../src/tools/glob-pattern.ts';
import { extended } from '../../../src/tools/grep.ts';
import { binaryMedia, sizeWords } from '../../../src/tools/media.ts';
import { terminalText } from '../../../src/tools/terminal-text.ts';

describe('terminal text', () => {
  it.each([
    ['10%\r50%\r100%\ndone', '100%\ndone'],
    ['a long line\rshort', 'shortg line'],
    ['one\r\ntwo\r\n', 'one\ntwo\n'],
    ['\u001b[31mred\u001b[0m \u001b]0;title\u0007x', 'red x'],
    ['abc\b\bd', 'ad'],
    ['plain', 'plain'],
  ])('%j is seen as %j', (raw, seen) => {
    expect(terminalText(raw)).toBe(seen);
  });
});

describe('caps', () => {
  it('keeps head and tail at line breaks and counts what it left out', () => {
    const text = Array.from({ length: 1000 }, (_, i) => `line ${i}`).join('\n');
    const capped = capText(text, 1000);
    expect(capped.text.startsWith('line 0\nline 1\n')).toBe(true);
    expect(capped.text.endsWith('\nline 999')).toBe(true);
    expect(capped.text.length).toBeLessThan(1100);
    expect(capped.text).toContain(`[… ${capped.removed} bytes left out …]`);
    expect(capText('short', 100)).toEqual({ text: 'short', removed: 0 });
  });

  it('never splits a character in two', () => {
    const capped = capText('😀'.repeat(1000), 101);
    expect(capped.text.isWellFormed()).toBe(true);
    expect(capped.text).not.toContain('\ufffd');
    expect(Buffer.byteLength(capped.text)).toBeLessThan(101 + '[… 4000 bytes left out …]'.length + 10);
    expect(capLines('😀'.repeat(10), 5).isWellFormed()).toBe(true);
  });

  it('cuts long lines and says by how much', () => {
    expect(capLines('ab\nabcdef', 4)).toBe('ab\nabcd [… 2 more characters in this line]');
  });
});

describe('glob patterns', () => {
  const cases: [pattern: string, yes: string[], no: string[]][] = [
    ['*.ts', ['a.ts', '.a.ts'], ['a/b.ts', 'a.tsx']],
    ['**/*.ts', ['a.ts', 'a/b.ts', 'a/b/c.ts'], ['a.js']],
    ['src/**', ['src/a', 'src/a/b'], ['src', 'srcs/a']],
    ['a/**/b', ['a/b', 'a/x/b', 'a/x/y/b'], ['ab', 'a/xb']],
    ['**', ['a', 'a/b'], []],
    ['a**b', ['ab', 'axb'], ['a/b']],
    ['f?.{js,ts}', ['f1.js', 'f2.ts'], ['f.js', 'f12.js', 'f1.css']],
    ['[a-c]x', ['ax', 'cx'], ['dx', '/x']],
    ['[!a]x', ['bx'], ['ax']],
    ['./a+(b).txt', ['a+(b).txt'], ['ab.txt']],
    ['ä/*.md', ['ä/ü.md'], []],
    ['\\*.ts', ['*.ts'], ['a.ts']],
  ];
  it.each(cases)('%s', (pattern, yes, no) => {
    const matches = globPattern(pattern);
    expect(yes.filter((path) => !matches.test(path))).toEqual([]);
    expect(no.filter((path) => matches.test(path))).toEqual([]);
  });

  it('says what is not closed', () => {
    expect(() => globPattern('[ab')).toThrow('a "[" is not closed');
    expect(() => globPattern('{a,b')).toThrow('a "{" is not closed');
  });
});

describe('regular expressions for a plain grep', () => {
  it.each([
    ['\\d+', '[0-9]+'],
    ['[\\d.]+', '[0-9.]+'],
    ['\\D', '[^0-9]'],
    ['\\\\d', '\\\\d'],
    ['[]\\d]', '[]0-9]'],
    ['a.b', 'a.b'],
  ])('%s becomes %s', (perl, posix) => {
    expect(extended(perl)).toBe(posix);
  });
});

describe('kinds of files', () => {
  it('knows binary files by their first bytes', () => {
    expect(binaryMedia(Buffer.from('hello'))).toBeUndefined();
    expect(binaryMedia(Buffer.from('%PDF-1.7'))?.name).toBe('a PDF document');
    expect(binaryMedia(Buffer.from('\x7fELF'))?.name).toBe('a program (ELF)');
    expect(binaryMedia(Buffer.from('a\0b'))?.name).toBe('a binary file');
    expect(binaryMedia(Buffer.from('RIFF\x01\x01\x01\x01WEBPVP8 '))).toMatchObject({ block: 'image' });
  });

  it('says sizes in words', () => {
    expect([sizeWords(12), sizeWords(20_480), sizeWords(5 * 1024 * 1024)]).toEqual(['12 bytes', '20 KiB', '5.0 MiB']);
  });
});

describe('the outcome of a command', () => {
  const result = {
    ended: 'exited' as const,
    exitCode: 0,
    stdout: new Uint8Array(),
    stderr: new Uint8Array(),
    cutBytes: 0,
    durationMs: 5,
  };
  const bytes = (text: string) => new TextEncoder().encode(text);

  it('says that there was no output', () => {
    expect(plainText(bashOutcome(result, 1000).content)).toBe('[No output. Exit code 0.]');
  });

  it('puts errors after output and names the exit code', () => {
    const outcome = bashOutcome({ ...result, exitCode: 2, stdout: bytes('out'), stderr: bytes('err\n') }, 1000);
    expect(outcome).toMatchObject({ kind: 'failed', exitCode: 2 });
    expect(plainText(outcome.content)).toBe('out\nerr\n[Exit code 2.]');
  });

  it('keeps the whole of a long output beside the shortened one', () => {
    const outcome = bashOutcome({ ...result, stdout: bytes('x'.repeat(200_000)) }, 1000);
    expect(plainText(outcome.content).length).toBeLessThan(103_000);
    expect(outcome.whole?.bytes.byteLength).toBe(200_000);
  });

  it('folds what a terminal would, and keeps the colours beside the log for people', () => {
    const raw = '10%\r100%\n\u001b[31mred\u001b[0m\n';
    const outcome = bashOutcome({ ...result, stdout: bytes(raw), stderr: bytes('é\n') }, 1000);
    expect(plainText(outcome.content)).toBe('100%\nred\né\n[Exit code 0.]');
    expect(outcome.whole).toEqual({ media_type: 'text/x-ansi; charset=utf-8', bytes: bytes(`${raw}é\n`) });
    expect(bashOutcome({ ...result, stdout: bytes('10%\r100%\n') }, 1000).whole).toBeUndefined();
  });

  it('caps by bytes, counts all that is left out', () => {
    const line = '\u001b[32mé\u001b[0m\n';
    const stdout = bytes(line.repeat(2_500_000));
    const outcome = bashOutcome({ ...result, stdout }, 1000);
    const shown = plainText(outcome.content);
    expect(Buffer.byteLength(shown)).toBeLessThan(101 * 1024);
    expect(Number(/\[… (\d+) bytes left out …\]/.exec(shown)?.[1])).toBeGreaterThan(20_000_000);
    expect(outcome.whole?.bytes.byteLength).toBe(stdout.byteLength);
  });

  it('says lost of a command whose end nobody saw, after what it printed', () => {
    const outcome = bashOutcome({ ...result, ended: 'lost', exitCode: null, stdout: bytes('so far\n') }, 1000);
    expect(outcome.kind).toBe('lost');
    expect(plainText(outcome.content)).toMatch(/^so far\n\[Lost: /);
  });

  it('says that bytes were lost between head and tail', () => {
    const outcome = bashOutcome({ ...result, stdout: bytes('head tail'), cutBytes: 77 }, 1000);
    expect(plainText(outcome.content)).toContain('77 bytes in its middle are lost');
  });

  it('names binary output as such, keeps it beside the log, and shows none of its bytes', () => {
    const stdout = Uint8Array.from([0x7f, 0x45, 0x4c, 0x46, 0, 0xff, 0xfe, 0]);
    const outcome = bashOutcome({ ...result, stdout }, 1000);
    expect(plainText(outcome.content)).toMatch(/^\[8 bytes of binary output, not shown\..*\]\n\[Exit code 0\.\]$/);
    expect(outcome.whole).toEqual({ media_type: 'application/x-elf', bytes: stdout });
  });

  it('shows a list whose items end in NUL', () => {
    expect(plainText(bashOutcome({ ...result, stdout: bytes('a.ts\0b.ts\0') }, 1000).content)).toContain('a.ts');
  });
});
