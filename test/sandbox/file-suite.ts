import { createHash } from 'node:crypto';
import { chmod, link, mkdir, readdir, readFile, rm, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { mint } from '../../src/protocol/ids.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { type Desk, noDesk } from '../../src/tools/desk.ts';
import { encodingNamed } from '../../src/tools/encodings.ts';
import type { Rig } from './rig.ts';
import { type CallOptions, call, said } from './tool-rig.ts';

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** A picture's header, and so many bytes after it. */
export function pngOf(width: number, height: number, more: number): Buffer {
  const header = Buffer.from('89504e470d0a1a0a0000000d494844520000000000000000080200000000000000', 'hex');
  header.writeUInt32BE(width, 16);
  header.writeUInt32BE(height, 20);
  return Buffer.concat([header, Buffer.alloc(more, 7)]);
}

/** A document's beginning and end; `middle` is what a reader would find between. */
const pdfOf = (middle: string): Buffer =>
  Buffer.from(`%PDF-1.4\n%\xe2\xe3\n${middle}\ntrailer\n<<>>\n%%EOF\n`, 'latin1');

const encoded = (name: string, text: string): Uint8Array => {
  const bytes = encodingNamed(name)?.encode(text);
  if (!(bytes instanceof Uint8Array)) throw new Error(`${name} can't write ${text}`);
  return bytes;
};

const reading = (encoding: string): Desk => ({ ...noDesk, encoding: () => encoding });
const editing = (...unsaved: string[]): Desk => ({ ...noDesk, unsaved: async (path) => unsaved.includes(path) });

/** What the log of one thread would say: what each call saw or left of a file. */
function memory(): Pick<CallOptions, 'seen'> & { call: typeof call } {
  const seen = new Map<string, string>();
  return {
    seen: (path) => seen.get(path),
    async call(sandbox, name, input, options = {}) {
      const outcome = await call(sandbox, name, input, { seen: (path) => seen.get(path), ...options });
      if (outcome.realPath !== undefined && outcome.fileSha256 !== undefined)
        seen.set(outcome.realPath, outcome.fileSha256);
      return outcome;
    },
  };
}

/** What the file tools promise of files, in whatever sandbox they run. */
export function fileSuite(at: () => { rig: Rig; sandbox: Sandbox }): void {
  let rig: Rig;
  let sandbox: Sandbox;
  const file = (path: string) => join(rig.workspace, path);
  const hex = (path: string) => readFile(file(path)).then((bytes) => bytes.toString('hex'));

  beforeEach(() => {
    ({ rig, sandbox } = at());
  });

  it('an edit changes no other byte of a file in another encoding', async () => {
    const cases: [encoding: string, before: string, old: string, fresh: string, hint?: string][] = [
      ['iso88591', `${'caf\xe9 \xfc\xdf '.repeat(100)}\na = 1\n`, 'a = 1', 'a = 2'],
      ['windows1252', `${'“caf\xe9” – €5\r\n'.repeat(30)}a = 1\r\n`, 'a = 1', 'a = 2'],
      ['gbk', `// 读取配置文件\nconst a = 1;\n`, 'const a = 1', 'const b = 2'],
      ['gbk', `// 读取\nx\n`, '读取', '写入', 'gbk'],
      ['shiftjis', `// 表示ソ\r\nx\r\n`, 'x\n', 'ソ\n表\n', 'shiftjis'],
      ['euckr', `// 설정\nx\n`, '설정\nx', '설정\n한', 'euckr'],
      ['big5hkscs', `// 許功蓋\nx\n`, 'x', '功', 'big5hkscs'],
      ['utf16le', '\ufeffa\r\nb é 日\r\n', 'b é', 'c ß'],
      ['utf16be', '\ufeffa\nb é 日\n', 'b é', 'c 😀'],
    ];
    for (const [i, [name, before, old_string, new_string, hint]] of cases.entries()) {
      const path = `enc/${i}-${name}.txt`;
      await rig.put(path, encoded(name, before));
      const options = hint === undefined ? {} : { desk: reading(hint) };
      const outcome = await call(sandbox, 'edit', { file_path: path, old_string, new_string }, options);
      expect([path, said(outcome)]).toEqual([path, expect.stringContaining('Replaced one')]);
      const eol = before.includes('\r\n') ? '\r\n' : '\n';
      const [old, fresh] = [old_string, new_string].map((text) => text.replaceAll('\n', eol));
      const after = encoded(
        name,
        before.replace(old ?? '', () => fresh ?? ''),
      );
      expect([path, await hex(path)]).toEqual([path, Buffer.from(after).toString('hex')]);
      expect(outcome.fileSha256).toBe(sha256(after));
    }
  });

  it('what an encoding does not have is refused, and the file left as it is', async () => {
    await rig.put('enc/refused.txt', encoded('gbk', '读 x\n'));
    const before = await hex('enc/refused.txt');
    const input = { file_path: 'enc/refused.txt', old_string: 'x', new_string: '😀' };
    const outcome = await call(sandbox, 'edit', input, { desk: reading('gbk') });
    expect(outcome.kind).toBe('failed');
    expect(said(outcome)).toContain('the file is in GBK, which has no "😀"');
    const unknown = await call(sandbox, 'edit', { ...input, new_string: 'é' });
    expect(said(unknown)).toContain('could not be written in its unknown encoding');
    expect(await hex('enc/refused.txt')).toBe(before);
  });

  it('read shows other encodings as text, ranges of them too', async () => {
    await rig.put('wide.txt', encoded('utf16le', '\ufeffone\r\nzwölf\r\ndrei\r\n'));
    const whole = said(await call(sandbox, 'read', { file_path: 'wide.txt' }));
    expect(whole).toBe('one\nzwölf\ndrei\n[This file is in UTF-16 LE, and edits are written in that.]');
    const part = said(await call(sandbox, 'read', { file_path: 'wide.txt', view_range: [2, 2] }));
    expect(part).toMatch(/^zwölf\n\[This file is in UTF-16 LE.*\]\n\[The file has 3 lines\.\]$/);
    await rig.put('sjis.txt', encoded('shiftjis', 'こんにちは、世界。これはテストです。\n'));
    expect(said(await call(sandbox, 'read', { file_path: 'sjis.txt' }))).toMatch(
      /^こんにちは.*\n\[.*seems to be Shift_JIS/,
    );
  });

  it('read cuts a file of many megabytes inside the sandbox, and still knows what it is', async () => {
    await call(sandbox, 'bash', {
      command: `i=0; s='line of a large file, with some words in it'; while [ $i -lt 6 ]; do s="$s
$s"; i=$((i + 1)); done; i=0; while [ $i -lt 700 ]; do echo "$s"; i=$((i + 1)); done > huge.txt; printf 'é end' >> huge.txt`,
    });
    const lines = 700 * 64 + 1;
    const end = await call(sandbox, 'read', { file_path: 'huge.txt', view_range: [lines - 1, 0] });
    expect(said(end)).toBe(`line of a large file, with some words in it\né end\n[The file has ${lines} lines.]`);
    expect(end.fileSha256).toBe(sha256(await readFile(file('huge.txt'))));
    const start = said(await call(sandbox, 'read', { file_path: 'huge.txt' }));
    expect(start).toMatch(new RegExp(`This is 256 KiB of 1\\.9 MiB, ${lines} lines\\. Go on with view_range`));
    const beyond = said(await call(sandbox, 'read', { file_path: 'huge.txt', view_range: [lines + 1, 0] }));
    expect(beyond).toBe(`huge.txt has no line ${lines + 1}: it has ${lines} lines.`);
    await call(sandbox, 'bash', { command: 'head -c 2000000 /dev/zero > zeros' });
    expect(said(await call(sandbox, 'read', { file_path: 'zeros' }))).toMatch(/is a binary file of 1\.9 MiB/);
  });

  it('read shows documents, and no picture or document that would be refused with everything after it', async () => {
    const pdf = pdfOf('/Type /Page ');
    await rig.put('doc.pdf', pdf);
    expect((await call(sandbox, 'read', { file_path: 'doc.pdf' })).content).toEqual([
      {
        type: 'document',
        source: { type: 'base64', media_type: 'application/pdf', data: pdf.toString('base64') },
        title: 'doc.pdf',
      },
    ]);
    const large = Buffer.concat([pdfOf('').subarray(0, 20), Buffer.alloc(2_000_000, 10), pdfOf('')]);
    await rig.put('large.pdf', large);
    const [block] = (await call(sandbox, 'read', { file_path: 'large.pdf' })).content;
    expect(block).toMatchObject({ type: 'document', source: { data: large.toString('base64') } });
    const refused: [name: string, content: Buffer, words: RegExp][] = [
      ['broken.pdf', pdf.subarray(0, 40), /its end is missing/],
      ['secret.pdf', pdfOf('/Encrypt 5 0 R'), /is encrypted/],
      ['pages.pdf', pdfOf('/Type /Page '.repeat(101)), /its 101 pages are more/],
      ['wide.png', pngOf(9000, 10, 10), /9000 × 10 pixels/],
      ['broken.png', pngOf(10, 10, 0).subarray(0, 20), /damaged/],
      ['big.png', pngOf(10, 10, 4_000_000), /images over 3\.3 MiB/],
    ];
    for (const [name, content, words] of refused) {
      await rig.put(name, content);
      const outcome = await call(sandbox, 'read', { file_path: name });
      expect([name, outcome.kind, said(outcome)]).toEqual([name, 'failed', expect.stringMatching(words)]);
    }
  });

  it('a file that was changed since the thread last saw it is neither edited nor overwritten', async () => {
    const thread = memory();
    await rig.put('shared.txt', 'one\ntwo\n');
    await thread.call(sandbox, 'read', { file_path: 'shared.txt', view_range: [1, 1] });
    const edit = { file_path: 'shared.txt', old_string: 'one', new_string: 'eins' };
    expect((await thread.call(sandbox, 'edit', edit)).kind).toBe('ok');
    expect((await thread.call(sandbox, 'edit', { ...edit, old_string: 'two', new_string: 'zwei' })).kind).toBe('ok');
    await rig.put('shared.txt', 'eins\nzwei\nmine\n');
    for (const [name, input] of [
      ['edit', { ...edit, old_string: 'zwei' }],
      ['write', { file_path: 'shared.txt', content: 'all new\n' }],
    ] as const) {
      const refused = await thread.call(sandbox, name, input);
      expect(refused).toMatchObject({ kind: 'failed', realPath: 'shared.txt' });
      expect(said(refused)).toContain('was changed since you last read or wrote it');
    }
    expect(await readFile(file('shared.txt'), 'utf8')).toBe('eins\nzwei\nmine\n');
    // Another thread, which never saw it, is not stopped by what this one knows.
    expect((await memory().call(sandbox, 'edit', { ...edit, old_string: 'mine', new_string: 'yours' })).kind).toBe(
      'ok',
    );
    await thread.call(sandbox, 'read', { file_path: 'shared.txt' });
    expect((await thread.call(sandbox, 'write', { file_path: 'shared.txt', content: 'all new\n' })).kind).toBe('ok');
  });

  it('a file with unsaved changes in the editor is neither edited nor overwritten, by whatever name', async () => {
    await rig.put('open.txt', 'as saved\n');
    await symlink('open.txt', file('other-name.txt'));
    const desk = editing('open.txt', 'new.txt');
    const calls: [string, Record<string, unknown>][] = [
      ['edit', { file_path: 'open.txt', old_string: 'saved', new_string: 'lost' }],
      ['edit', { file_path: 'other-name.txt', old_string: 'saved', new_string: 'lost' }],
      ['write', { file_path: 'open.txt', content: 'lost' }],
      ['write', { file_path: './sub/../new.txt', content: 'lost' }],
    ];
    for (const [name, input] of calls) {
      const outcome = await call(sandbox, name, input, { desk });
      expect([input, outcome.kind]).toEqual([input, 'failed']);
      expect(said(outcome)).toContain("open in the person's editor with changes that are not saved");
    }
    expect(await readFile(file('open.txt'), 'utf8')).toBe('as saved\n');
    expect(await readdir(rig.workspace)).not.toContain('new.txt');
    expect((await call(sandbox, 'read', { file_path: 'open.txt' }, { desk })).kind).toBe('ok');
  });

  it('write keeps encoding, byte order mark and line endings, or says what it changed', async () => {
    const cases: [before: Uint8Array, content: string, after: Uint8Array, words: RegExp, hint?: string][] = [
      [Buffer.from('a\r\nb\r\n'), 'x\ny\n', Buffer.from('x\r\ny\r\n'), /\(replaced; CRLF line endings kept\)/],
      [Buffer.from('\ufeffa\n'), 'x\n', Buffer.from('\ufeffx\n'), /\(replaced; byte order mark kept\)/],
      [
        encoded('utf16le', '\ufeffa\r\n'),
        'é\n',
        encoded('utf16le', '\ufeffé\r\n'),
        /in UTF-16 LE as before; byte order/,
      ],
      [encoded('gbk', '读\n'), '写\n', encoded('gbk', '写\n'), /in GBK as before/, 'gbk'],
      [encoded('gbk', '读\n'), '😀\n', Buffer.from('😀\n'), /now UTF-8: it was GBK, which has no "😀"/, 'gbk'],
      [encoded('gbk', '读\n'), '写\n', Buffer.from('写\n'), /now UTF-8: its encoding was not known/],
      [encoded('gbk', '读\n'), 'plain\n', Buffer.from('plain\n'), /\(replaced\)/],
      [Buffer.from('a\r\nb\n'), 'x\ny\n', Buffer.from('x\ny\n'), /line endings were mixed/],
      [Buffer.from('a\0b'), 'x\n', Buffer.from('x\n'), /it was no text before/],
    ];
    for (const [i, [before, content, after, words, hint]] of cases.entries()) {
      const path = `kept/${i}.txt`;
      await rig.put(path, before);
      const options = hint === undefined ? {} : { desk: reading(hint) };
      const outcome = await call(sandbox, 'write', { file_path: path, content }, options);
      expect([i, said(outcome)]).toEqual([i, expect.stringMatching(words)]);
      expect([i, await hex(path)]).toEqual([i, Buffer.from(after).toString('hex')]);
      expect([i, outcome.fileSha256]).toEqual([i, sha256(after)]);
    }
    const fresh = await call(
      sandbox,
      'write',
      { file_path: 'kept/new.ps1', content: 'é' },
      { desk: reading('utf8bom') },
    );
    expect(said(fresh)).toContain('(a new file; with a byte order mark)');
    expect(await hex('kept/new.ps1')).toBe('efbbbfc3a9');
    const half = await call(sandbox, 'write', { file_path: 'kept/half.txt', content: 'a\ud800' });
    expect(said(half)).toContain('half of a character');
  });

  it('a write keeps the mode and says when other names of the file keep the old content', async () => {
    await rig.put('tool.sh', 'echo 1\n');
    await chmod(file('tool.sh'), 0o750);
    await link(file('tool.sh'), file('second.sh'));
    const before = await stat(file('tool.sh'));
    const outcome = await call(sandbox, 'edit', { file_path: 'tool.sh', old_string: '1', new_string: '2' });
    expect(said(outcome)).toMatch(/its other names \(hard links\) keep the old content/);
    const after = await stat(file('tool.sh'));
    expect([after.mode, after.uid, after.gid]).toEqual([before.mode, before.uid, before.gid]);
    expect(await readFile(file('second.sh'), 'utf8')).toBe('echo 1\n');
    expect(await readFile(file('tool.sh'), 'utf8')).toBe('echo 2\n');
  });

  it('no write leaves the workspace while the folders on its way are swapped for links', async () => {
    // A folder that the sandbox's own user may write: nothing but the check at the write itself is in the way.
    const outside = said(await call(sandbox, 'bash', { command: 'mktemp -d' })).split('\n')[0] ?? '';
    const listed = { command: `find '${outside}' | wc -l` };
    const stop = new AbortController();
    try {
      await mkdir(file('race/real'), { recursive: true });
      await symlink(outside, file('race/link'));
      // With -T, nothing is ever moved into a folder, so it is never this loop that carries a file out.
      const again = `rm -rf d; [ -d real ] || mkdir real; [ -L link ] || ln -s '${outside}' link`;
      const swap = `cd race; while :; do mv -T real d; mv -T d real; mv -T link d; mv -T d link; ${again}; done 2>/dev/null`;
      const swapping = call(sandbox, 'bash', { command: swap }, { thread: mint.thread(), signal: stop.signal });
      for (let i = 0; i < 12; i++) {
        const outcome = await call(sandbox, 'write', { file_path: `race/d/deep/${i}.txt`, content: 'x' });
        if (outcome.kind === 'ok') expect(outcome.realPath).toMatch(/^race\/.*\d+\.txt$/);
      }
      stop.abort();
      await swapping;
      expect(said(await call(sandbox, 'bash', listed)).trim()).toMatch(/^1\n/);
    } finally {
      stop.abort();
      await call(sandbox, 'bash', { command: `rm -rf race '${outside}'` });
    }
  });

  it('what is in .drover is out of reach, by name and by link', async () => {
    await rig.put('.drover/secret.txt', 'hidden needle\n');
    await symlink('.drover/secret.txt', file('way-in.txt'));
    await symlink('.drover', file('way'));
    const calls: [string, Record<string, unknown>][] = [
      ['read', { file_path: '.drover/secret.txt' }],
      ['read', { file_path: 'way-in.txt' }],
      ['read', { file_path: 'way/secret.txt' }],
      ['write', { file_path: 'way/new.txt', content: 'x' }],
      ['edit', { file_path: 'way-in.txt', old_string: 'hidden', new_string: 'shown' }],
      ['glob', { pattern: '*', path: '.drover' }],
      ['grep', { pattern: 'needle', path: 'way' }],
    ];
    try {
      for (const [name, input] of calls) {
        const outcome = await call(sandbox, name, input);
        expect([name, input, outcome.kind]).toEqual([name, input, 'failed']);
        expect(said(outcome)).toMatch(/sessions themselves are kept|does not exist|leads nowhere|outside/);
      }
      expect(said(await call(sandbox, 'grep', { pattern: 'hidden needle' }))).toMatch(/^Nothing matches/);
      expect(said(await call(sandbox, 'glob', { pattern: '**/secret.txt' }))).toMatch(/^No file matches/);
    } finally {
      for (const path of ['way-in.txt', 'way', '.drover/secret.txt']) await rm(file(path), { force: true });
    }
  });

  it('glob and grep pass over what ignore files name, and go there when they are sent', async () => {
    const files: Record<string, string> = {
      '.gitignore': '*.log\n/out/\nbuild\n!keep.log\n# a comment\n',
      'a.log': '',
      'keep.log': '',
      'out/x.txt': '',
      'src/out/y.txt': '',
      'src/.gitignore': '!b.log\nlocal-*\n!/build/\n',
      'src/b.log': '',
      'src/local-1': '',
      'src/build/z.txt': '',
      'src/build/z.log': '',
      'lib/build/w.txt': '',
      'node_modules/p/i.txt': '',
    };
    for (const [path, content] of Object.entries(files)) await rig.put(`ig/${path}`, `${content}needle\n`);
    const listed = async (path: string) =>
      said(await call(sandbox, 'glob', { pattern: '**/*', path }))
        .split('\n')
        .sort();
    const found = async (path: string) =>
      said(await call(sandbox, 'grep', { pattern: '^needle$', path }))
        .split('\n')
        .map((line) => line.replace(/:\d+:needle$/, ''))
        .sort();
    const seen = [
      'ig/.gitignore',
      'ig/keep.log',
      'ig/src/.gitignore',
      'ig/src/b.log',
      'ig/src/build/z.txt',
      'ig/src/out/y.txt',
    ];
    expect(await listed('ig')).toEqual(seen);
    expect(await found('ig')).toEqual(seen);
    expect(await listed('ig/out')).toEqual(['ig/out/x.txt']);
    expect(await found('ig/out')).toEqual(['ig/out/x.txt']);
    expect(await found('ig/lib/build')).toEqual(['ig/lib/build/w.txt']);
    expect(await listed('ig/node_modules/p')).toEqual(['ig/node_modules/p/i.txt']);
    expect(await found('ig/a.log')).toEqual(['ig/a.log']);
  });

  it('grep shows lines of any encoding and file names with colons', async () => {
    await rig.put('enc-grep/a:1:b.txt', 'x needle: 5\n');
    await rig.put('enc-grep/latin.txt', Buffer.from('caf\xe9 needle\r\n', 'latin1'));
    const found = said(await call(sandbox, 'grep', { pattern: 'needle', path: 'enc-grep' }));
    expect(found).toBe('enc-grep/a:1:b.txt:1:x needle: 5\nenc-grep/latin.txt:1:café needle');
    const ahead = await call(sandbox, 'grep', { pattern: 'nee(?=dle:)', path: 'enc-grep' });
    if (ahead.kind === 'ok') expect(said(ahead)).toBe('enc-grep/a:1:b.txt:1:x needle: 5');
    else expect(said(ahead)).toContain('The search could not be made');
  });

  it('grep caps what it gives back, and says that there is more', async () => {
    await rig.put('many/lines.txt', `${'needle in a haystack\n'.repeat(20_000)}`);
    const found = said(await call(sandbox, 'grep', { pattern: 'needle', path: 'many' }));
    expect(found.length).toBeLessThan(103 * 1024);
    expect(found).toMatch(/\nmany\/lines\.txt:\d+:needle in a haystack\n\[There are more matches: [^\n]*\]$/);
  });
}
