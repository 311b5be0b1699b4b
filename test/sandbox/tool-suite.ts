import { createHash } from 'node:crypto';
import { chmod, mkdir, readFile, readlink, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, it } from 'vitest';
import { mint } from '../../src/protocol/ids.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { writeBytes } from '../../src/tools/put-file.ts';
import { makeFolder } from '../support/temp.ts';
import { fileSuite, pngOf } from './file-suite.ts';
import type { Rig } from './rig.ts';
import { call, contextFor, said, toolbox } from './tool-rig.ts';

/** A sandbox that gives its calls variables, as one with a way out does. */
const withEnv = (sandbox: Sandbox, env: Record<string, string>): Sandbox => ({
  id: sandbox.id,
  kind: sandbox.kind,
  workspace: sandbox.workspace,
  run: (request) => sandbox.run({ ...request, env: { ...env, ...request.env } }),
  lookup: (id) => sandbox.lookup(id),
  open: (request) => sandbox.open({ ...request, env: { ...env, ...request.env } }),
});

const bytes = (path: string) => readFile(path).then((buffer) => buffer.toString('latin1'));

/** What the tools promise, in whatever sandbox they run. `at` gives the rig and the sandbox once they exist. */
export function toolSuite(at: () => { rig: Rig; sandbox: Sandbox }): void {
  let rig: Rig;
  let sandbox: Sandbox;
  const file = (path: string) => join(rig.workspace, path);

  beforeEach(() => {
    ({ rig, sandbox } = at());
  });

  it('bash keeps working directory and exported variables from call to call, per thread', async () => {
    await mkdir(file('sub folder'), { recursive: true });
    await call(sandbox, 'bash', { command: 'cd "sub folder"; export COLOUR="a \'b\' $c\n2nd line"' });
    const next = await call(sandbox, 'bash', { command: 'pwd; echo "$COLOUR"' });
    expect(said(next)).toBe(`${sandbox.workspace}/sub folder\na 'b' \n2nd line\n[Exit code 0.]`);
    const other = await call(sandbox, 'bash', { command: 'pwd; echo "[$COLOUR]"' }, { thread: mint.thread() });
    expect(said(other)).toBe(`${sandbox.workspace}\n[]\n[Exit code 0.]`);
    expect(said(await call(sandbox, 'bash', { restart: true }))).toBe('The shell was restarted.');
    expect(said(await call(sandbox, 'bash', { command: 'pwd' }))).toBe(`${sandbox.workspace}\n[Exit code 0.]`);
  });

  it('bash keeps all that a shell has, where it is bash: variables, functions, aliases, options', async () => {
    const options = { thread: mint.thread() };
    const bash = async (command: string) => said(await call(sandbox, 'bash', { command }, options));
    if (!(await bash('echo "$BASH_VERSION"')).startsWith('5')) return;
    await bash(
      'plain="it\'s"; list=(a "b c"); declare -A map=([k]="v 1"); greet() { echo "hello $1"; }; alias hi="echo aliased"; shopt -s extglob; set -o pipefail; export PATH="$PATH:/more"; readonly FIXED=7; unset TERM',
    );
    expect(
      await bash(`echo "$plain \${list[1]} \${map[k]} $FIXED \${TERM-none}"; greet you; hi; false | true; echo $?`),
    ).toBe("it's b c v 1 7 none\nhello you\naliased\n1\n[Exit code 0.]");
    expect(await bash(`case $PATH in *:/more) echo "\${#list[@]}" ;; esac; shopt -q extglob && echo on`)).toBe(
      '2\non\n[Exit code 0.]',
    );
    expect(await bash('set -x; set -eu')).toBe('++ set -eu\n[Exit code 0.]');
    expect(await bash('echo "$nowhere"; echo not reached')).toMatch(/nowhere: unbound variable\n\[Exit code 1\.\]$/);
    expect(await bash('set +xeu; echo still "$plain"')).toMatch(/^still it's\n\++ set \+xeu\n\[Exit code 0\.\]$/);
    for (const value of ['new', 'new', 'newer', 'new']) {
      await bash(`plain=${value}`);
      await bash('true');
      expect(await bash('echo "$plain"')).toBe(`${value}\n[Exit code 0.]`);
    }
    await call(sandbox, 'bash', { restart: true }, options);
    expect(await bash('echo "[$plain]"; type greet >/dev/null 2>&1 || echo gone')).toBe('[]\ngone\n[Exit code 0.]');
  });

  it('bash gives each call the variables it is given, not those of an earlier one', async () => {
    const thread = mint.thread();
    const started = (token: string, command: string) => {
      const env = { CALL_PROXY: `http://${token}@127.0.0.1:9`, call_proxy: token };
      return call(withEnv(sandbox, env), 'bash', { command }, { thread });
    };
    await started('one', 'export MINE=1');
    const later = await started('two', 'echo "$MINE $CALL_PROXY $call_proxy"');
    expect(said(later)).toBe('1 http://two@127.0.0.1:9 two\n[Exit code 0.]');
  });

  it('bash keeps its state through a failing command and an explicit exit', async () => {
    const thread = mint.thread();
    const failed = await call(sandbox, 'bash', { command: 'export A=1; cd /; exit 4' }, { thread });
    expect(failed).toMatchObject({ kind: 'failed', exitCode: 4 });
    expect(said(failed)).toBe('[No output. Exit code 4.]');
    expect(said(await call(sandbox, 'bash', { command: 'echo $A; pwd' }, { thread }))).toBe('1\n/\n[Exit code 0.]');
  });

  it('bash takes quotes, here-documents and very long commands as they are', async () => {
    const long = 'x'.repeat(300_000);
    const result = await call(sandbox, 'bash', {
      command: `cat <<'END' | wc -c\n${long}\nEND\necho "it's \\"fine\\"" '$HOME'`,
    });
    expect(said(result).replaceAll(/ +/g, ' ').trim()).toContain(`300001\nit's "fine" $HOME`);
  });

  it('bash folds progress bars and colours away for the model, and streams them as they are', async () => {
    let live = '';
    const result = await call(
      sandbox,
      'bash',
      { command: `printf '10%%\\r50%%\\r100%%\\n\\033[31mred\\033[0m\\n'` },
      { onOutput: (text) => (live += text) },
    );
    expect(said(result)).toBe('100%\nred\n[Exit code 0.]');
    expect(live).toContain('50%\r100%');
  });

  it('bash says what came before a timeout and kills what it started', async () => {
    const result = await call(sandbox, 'bash', { command: 'echo before; sleep 400', timeout_ms: 700 });
    expect(result).toMatchObject({ kind: 'timed_out', exitCode: null });
    expect(said(result)).toMatch(/^before\n\[Ended: it did not finish within 0\.7 s/);
  });

  it('bash is cancelled by the signal', async () => {
    const controller = new AbortController();
    const running = call(
      sandbox,
      'bash',
      { command: 'echo go; sleep 401' },
      { signal: controller.signal, onOutput: () => controller.abort() },
    );
    expect((await running).kind).toBe('cancelled');
  });

  it('bash shows head and tail of 10 MB and keeps the whole up to its cap', async () => {
    const result = await call(sandbox, 'bash', {
      command: 'echo first; yes abcdefg | head -c 6000000; echo; echo last',
    });
    const text = said(result);
    expect(text.length).toBeLessThan(110_000);
    expect(text).toMatch(/^first\nabcdefg/);
    expect(text).toMatch(/last\n\[Exit code 0\.\]$/);
    expect(text).toMatch(/\[… \d+ bytes left out …\]/);
    expect(result.whole?.bytes.byteLength).toBe('first\n'.length + 6_000_000 + '\nlast\n'.length);
    const huge = await call(sandbox, 'bash', { command: 'yes abcdefg | head -c 48000000' });
    expect(said(huge)).toMatch(/\d+ bytes in its middle are lost/);
    expect(huge.whole?.bytes.byteLength).toBeLessThanOrEqual(32 * 1024 * 1024);
  });

  it('bash is found again after its harness died', async () => {
    const executionId = mint.execution();
    const input = { command: 'echo kept; exit 6' };
    await call(sandbox, 'bash', input, { executionId });
    const context = contextFor(() => Promise.resolve(sandbox), { executionId });
    const recovery = await toolbox.recover('bash', input, context);
    if (recovery.found === 'absent') throw new Error('not found');
    expect(recovery.found).toBe('finished');
    expect(await recovery.outcome).toMatchObject({ kind: 'failed', exitCode: 6 });
    const unknown = contextFor(() => Promise.resolve(sandbox));
    expect(await toolbox.recover('bash', input, unknown)).toEqual({ found: 'absent' });
  });

  it('write makes folders and keeps the mode of a file it replaces', async () => {
    const first = await call(sandbox, 'write', { file_path: 'new/deep/run.sh', content: 'echo é\n' });
    expect(first).toMatchObject({ kind: 'ok', realPath: 'new/deep/run.sh' });
    expect(said(first)).toBe('Wrote 8 bytes to new/deep/run.sh (a new file).');
    await chmod(file('new/deep/run.sh'), 0o755);
    const second = await call(sandbox, 'write', { file_path: `${sandbox.workspace}/new/deep/run.sh`, content: '' });
    expect(said(second)).toContain('0 bytes');
    expect(((await stat(file('new/deep/run.sh'))).mode & 0o777).toString(8)).toBe('755');
    expect(await bytes(file('new/deep/run.sh'))).toBe('');
  });

  it('write is found again after its harness died, and says so', async () => {
    const executionId = mint.execution();
    const input = { file_path: 'found.txt', content: 'x' };
    await call(sandbox, 'write', input, { executionId });
    const recovery = await toolbox.recover(
      'write',
      input,
      contextFor(() => Promise.resolve(sandbox), { executionId }),
    );
    if (recovery.found === 'absent') throw new Error('not found');
    const fileSha256 = createHash('sha256').update('x').digest('hex');
    expect(await recovery.outcome).toMatchObject({ kind: 'ok', realPath: 'found.txt', fileSha256 });
  });

  it('no file tool leaves the workspace, neither by path nor by link', async () => {
    const outside = await makeFolder('drover-outside-');
    try {
      await writeFile(join(outside, 'victim.txt'), 'precious\n');
      await symlink(join(outside, 'victim.txt'), file('link.txt'));
      await symlink(outside, file('linkdir'));
      await symlink('/etc/passwd', file('passwd'));
      await symlink('/etc', file('etc'));
      const calls: [string, Record<string, unknown>][] = [
        ['read', { file_path: 'passwd' }],
        ['read', { file_path: '/etc/passwd' }],
        ['read', { file_path: '../../etc/passwd' }],
        ['write', { file_path: 'link.txt', content: 'gone' }],
        ['write', { file_path: 'linkdir/victim.txt', content: 'gone' }],
        ['write', { file_path: 'linkdir/new/x.txt', content: 'x' }],
        ['write', { file_path: 'etc/evil', content: 'x' }],
        ['write', { file_path: 'etc/new/evil', content: 'x' }],
        ['read', { file_path: 'etc/passwd' }],
        ['write', { file_path: '/tmp/x.txt', content: 'x' }],
        ['edit', { file_path: 'passwd', old_string: 'root', new_string: 'toor' }],
        ['glob', { pattern: '*', path: '../..' }],
        ['grep', { pattern: 'root', path: 'passwd' }],
      ];
      for (const [name, input] of calls) {
        const outcome = await call(sandbox, name, input);
        expect([name, input, outcome.kind]).toEqual([name, input, 'failed']);
        expect(said(outcome)).toMatch(/outside the workspace|does not exist|leads nowhere/);
      }
      expect(await bytes(join(outside, 'victim.txt'))).toBe('precious\n');
    } finally {
      for (const link of ['link.txt', 'linkdir', 'passwd', 'etc']) await rm(file(link), { force: true });
      await rm(outside, { recursive: true });
    }
  });

  it('a link within the workspace is followed, and the real path reported', async () => {
    await rig.put('real/target.txt', 'old\n');
    await symlink('real/target.txt', file('alias.txt'));
    const written = await call(sandbox, 'write', { file_path: 'alias.txt', content: 'new\n' });
    expect(written).toMatchObject({ kind: 'ok', realPath: 'real/target.txt' });
    expect(await readlink(file('alias.txt'))).toBe('real/target.txt');
    expect(await bytes(file('real/target.txt'))).toBe('new\n');
    expect(await call(sandbox, 'read', { file_path: 'alias.txt' })).toMatchObject({ realPath: 'real/target.txt' });
  });

  it('refuses to write what would be run or trusted outside', async () => {
    await rig.put('.git/config', '[core]\n');
    for (const path of [
      '.git/config',
      '.git/hooks/pre-commit',
      '.vscode/tasks.json',
      '.GIT/hooks/x',
      'sub/.git/config',
    ]) {
      const outcome = await call(sandbox, 'write', { file_path: path, content: 'evil' });
      expect([path, outcome.kind]).toEqual([path, 'failed']);
      expect(said(outcome)).toContain('protected');
    }
    for (const path of ['.devcontainer/devcontainer.json', '.drover/log.jsonl'])
      expect((await call(sandbox, 'write', { file_path: path, content: 'evil' })).kind).toBe('failed');
    expect(await bytes(file('.git/config'))).toBe('[core]\n');
  });

  it('read gives lines of a large file and says how to go on', async () => {
    const lines = Array.from({ length: 50_000 }, (_, i) => `line ${i + 1}`);
    await rig.put('large.txt', `${lines.join('\n')}\n`);
    const head = said(await call(sandbox, 'read', { file_path: 'large.txt' }));
    expect(head.length).toBeLessThan(257 * 1024);
    const next = Number(/view_range \[(\d+), 0\]/.exec(head)?.[1]);
    expect(head).toContain(`line ${next - 1}\n[`);
    expect(head).toContain('50000 lines');
    const part = said(await call(sandbox, 'read', { file_path: 'large.txt', view_range: [49_998, 49_999] }));
    expect(part).toBe('line 49998\nline 49999\n[The file has 50000 lines.]');
    const rest = said(await call(sandbox, 'read', { file_path: 'large.txt', view_range: [next, 0] }));
    expect(rest.startsWith(`line ${next}\n`)).toBe(true);
    const beyond = await call(sandbox, 'read', { file_path: 'large.txt', view_range: [60_000, 60_001] });
    expect(said(beyond)).toContain('has no line 60000');
  });

  it('read refuses binary files in words, shows images, and says that a file is empty', async () => {
    await rig.put('data.bin', new Uint8Array([1, 2, 0, 3]));
    expect(said(await call(sandbox, 'read', { file_path: 'data.bin' }))).toMatch(/is a binary file of 4 bytes/);
    const png = pngOf(40, 30, 400_000);
    await rig.put('picture.png', png);
    const shown = await call(sandbox, 'read', { file_path: 'picture.png' });
    expect(shown.content).toEqual([
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png.toString('base64') } },
    ]);
    await rig.put('empty.txt', '');
    expect(said(await call(sandbox, 'read', { file_path: 'empty.txt' }))).toBe('empty.txt is empty.');
    expect(said(await call(sandbox, 'read', { file_path: 'none.txt' }))).toBe('none.txt does not exist.');
    expect(said(await call(sandbox, 'read', { file_path: '.' }))).toBe('. is a folder, not a file.');
    await rig.put('latin.txt', Buffer.from('caf\xe9\n', 'latin1'));
    expect(said(await call(sandbox, 'read', { file_path: 'latin.txt' }))).toMatch(
      /^café\n\[This file is not valid UTF-8/,
    );
  });

  it('edit changes only the bytes it was asked to, whatever the file’s encoding and line endings', async () => {
    const cases: [name: string, before: string, old: string, replacement: string, after: string][] = [
      ['crlf', 'one\r\ntwo\r\nthree\r\n', 'two\nthree', 'zwei\nund\ndrei', 'one\r\nzwei\r\nund\r\ndrei\r\n'],
      ['bom', '\xef\xbb\xbfa = 1\n', 'a = 1', 'a = 2', '\xef\xbb\xbfa = 2\n'],
      ['latin1', '# caf\xe9 \xfc\na = 1\n', 'a = 1', 'a = 2', '# caf\xe9 \xfc\na = 2\n'],
      ['utf8', '# caf\xc3\xa9\na = 1\n', '# café\na', '# café!\na', '# caf\xc3\xa9!\na = 1\n'],
      ['mixed', 'a\r\nb\nc\r\n', 'b', 'B', 'a\r\nB\nc\r\n'],
      ['no-newline', 'last', 'last', 'end', 'end'],
    ];
    for (const [name, before, old_string, new_string, after] of cases) {
      await rig.put(`${name}.txt`, Buffer.from(before, 'latin1'));
      const outcome = await call(sandbox, 'edit', { file_path: `${name}.txt`, old_string, new_string });
      expect([name, said(outcome), outcome.kind]).toEqual([name, expect.stringContaining('Replaced one'), 'ok']);
      expect([name, await bytes(file(`${name}.txt`))]).toEqual([name, after]);
    }
  });

  it('edit wants exactly one match unless told otherwise, and says what it found', async () => {
    await rig.put('many.txt', 'x = 1\ny = 2\nx = 1\n');
    const twice = await call(sandbox, 'edit', { file_path: 'many.txt', old_string: 'x = 1', new_string: 'x = 3' });
    expect(said(twice)).toContain('occurs 2 times, at lines 1, 3');
    const none = await call(sandbox, 'edit', { file_path: 'many.txt', old_string: 'y  =  2', new_string: 'y = 3' });
    expect(said(none)).toContain('2: y = 2');
    expect(await bytes(file('many.txt'))).toBe('x = 1\ny = 2\nx = 1\n');
    const all = { file_path: 'many.txt', old_string: 'x = 1', new_string: 'x = 3', replace_all: true };
    expect(said(await call(sandbox, 'edit', all))).toContain('2 occurrences');
    expect(await bytes(file('many.txt'))).toBe('x = 3\ny = 2\nx = 3\n');
  });

  it('edit writes nothing if the file was changed since it was read', async () => {
    await rig.put('raced.txt', 'one\n');
    const stale = createHash('sha256').update('not what is there').digest('hex');
    const context = contextFor(() => Promise.resolve(sandbox));
    const writing = writeBytes(sandbox, context, 'raced.txt', new TextEncoder().encode('two\n'), stale);
    await expect(writing).rejects.toMatchObject({
      outcome: { kind: 'failed', content: [{ text: expect.stringContaining('was changed by someone else') }] },
    });
    expect(await bytes(file('raced.txt'))).toBe('one\n');
  });

  it('edit refuses a binary file', async () => {
    await rig.put('data.bin', new Uint8Array([65, 0, 66]));
    const outcome = await call(sandbox, 'edit', { file_path: 'data.bin', old_string: 'A', new_string: 'B' });
    expect(outcome.kind).toBe('failed');
    expect(said(outcome)).toContain('not text, so it was not changed');
  });

  it('glob finds newest first and passes over .git and node_modules', async () => {
    for (const path of ['g/src/a.ts', 'g/src/deep/b.ts', 'g/c.ts', 'g/node_modules/m.ts', 'g/.git/x.ts', 'g/d.js'])
      await rig.put(path, '');
    await utimes(file('g/c.ts'), 1000, 1000);
    await utimes(file('g/src/a.ts'), 3000, 3000);
    await utimes(file('g/src/deep/b.ts'), 2000, 2000);
    const found = await call(sandbox, 'glob', { pattern: '**/*.ts', path: 'g' });
    expect(said(found)).toBe('g/src/a.ts\ng/src/deep/b.ts\ng/c.ts');
    expect(said(await call(sandbox, 'glob', { pattern: 'g/*.{js,py}' }))).toBe('g/d.js');
    expect(said(await call(sandbox, 'glob', { pattern: '*.rs', path: 'g' }))).toBe('No file matches *.rs in g.');
    expect(said(await call(sandbox, 'glob', { pattern: '*', path: 'nowhere' }))).toBe('nowhere does not exist.');
  });

  it('glob shows at most 200 and says how many more there are', async () => {
    await call(sandbox, 'bash', { command: 'mkdir lots; cd lots; for i in $(seq 230); do : >f$i.txt; done; cd ..' });
    const found = said(await call(sandbox, 'glob', { pattern: 'lots/*.txt' }));
    expect(found.split('\n')).toHaveLength(201);
    expect(found).toContain('[30 more not shown');
  });

  it('grep finds lines, cuts long ones, and says when nothing matches', async () => {
    await rig.put('s/one.txt', 'alpha\nbeta 42\n');
    await rig.put('s/two.txt', `gamma 7 ${'x'.repeat(5000)}\n`);
    await rig.put('s/bin.dat', Buffer.from('beta\0 42'));
    await rig.put('s/node_modules/three.txt', 'beta 43\n');
    const found = said(await call(sandbox, 'grep', { pattern: '\\w+ \\d+', path: 's' }));
    const [first, second] = found.split('\n').sort();
    expect(first).toBe('s/one.txt:2:beta 42');
    expect(second).toMatch(/^s\/two\.txt:1:gamma 7 x+ \[… \d+ more characters in this line\]$/);
    expect(found.split('\n')).toHaveLength(2);
    expect(said(await call(sandbox, 'grep', { pattern: 'beta', path: 's/one.txt' }))).toBe('s/one.txt:2:beta 42');
    expect(said(await call(sandbox, 'grep', { pattern: 'zeta', path: 's' }))).toBe('Nothing matches zeta in s.');
    const bad = await call(sandbox, 'grep', { pattern: '(unclosed', path: 's' });
    expect(bad.kind).toBe('failed');
    expect(said(bad)).toMatch(/could not be made/);
  });

  fileSuite(at);

  it('a read-only file is refused and left alone', async () => {
    await rig.put('locked.txt', 'locked\n');
    await chmod(file('locked.txt'), 0o444);
    const outcome = await call(sandbox, 'write', { file_path: 'locked.txt', content: 'x' });
    if (outcome.kind !== 'ok') expect(said(outcome)).toContain('write-protected');
    expect(await bytes(file('locked.txt'))).toBe(outcome.kind === 'ok' ? 'x' : 'locked\n');
  });

  it('leaves no temporary file behind', async () => {
    await sleep(50);
    const left = said(
      await call(sandbox, 'bash', { command: 'find . -name ".drover-*" | grep -v "^./.drover$"; true' }),
    );
    expect(left).toBe('[No output. Exit code 0.]');
  });
}
