import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SAMPLE_TASK } from '../../../src/rehearsal/scenarios/fix-the-sample.ts';
import { type Rehearsal, startRehearsal } from '../../../src/rehearsal/server.ts';
import { clientFor } from '../model/ask.ts';
import { Driver, eachOnItsOwnSample, type Meddle } from './driver.ts';

const stage = eachOnItsOwnSample();

const driver = (meddle?: Meddle) => new Driver(clientFor(stage.server.url), stage.folder, meddle);
const schedule = () => readFile(join(stage.folder, 'src/schedule.js'), 'utf8');
const changed = () => execFileSync('git', ['diff', '--stat'], { cwd: stage.folder, encoding: 'utf8' });
const namesOf = (one: Driver) => one.calls.map((call) => call.name);

test('the bug is found by running the test, fixed by one edit, verified, reviewed by a child, summed up with real numbers', async () => {
  const main = driver();
  const words = await main.say(SAMPLE_TASK);
  expect(namesOf(main)).toEqual(['bash', 'glob', 'read', 'read', 'read', 'edit', 'bash', 'create_agent']);
  expect(main.calls[5]?.input).toMatchObject({ file_path: 'src/schedule.js' });
  expect(namesOf(main.children[0] ?? main)).toEqual(['bash', 'bash']);
  expect(await schedule()).toContain('.sort((a, b) => a - b)');
  expect(changed()).toMatch(/src\/schedule\.js.*\n 1 file changed, 1 insertion\(\+\), 1 deletion\(-\)/);
  expect(words).toContain('Before: 1 of 8 tests failed (“a quick tea waits for a slow one”)');
  expect(words).toContain('After: 8 of 8 tests pass, 0 fail');
  expect(words).toContain('all 8 tests pass');
  expect(words).toContain('1 file, 1 line added and 1 removed');
}, 60_000);

test('another server on another port goes on with the same conversation', async () => {
  let url = stage.server.url;
  const others: Rehearsal[] = [];
  const client = {
    ...clientFor(stage.server.url),
    request: async (...args: Parameters<ReturnType<typeof clientFor>['request']>) => {
      const reply = await clientFor(url).request(...args);
      const next = await startRehearsal();
      others.push(next);
      url = next.url;
      return reply;
    },
  };
  try {
    const words = await new Driver(client, stage.folder).say(SAMPLE_TASK);
    expect(words).toContain('The bug is fixed.');
    expect(others.length).toBeGreaterThan(5);
  } finally {
    await Promise.all(others.map((other) => other.close()));
  }
}, 60_000);

const denied = (reason = '') => ({
  text: `The user denied this call${reason ? `, saying: ${reason}` : '.'}\nIt did not run. Do not try to reach the same goal another way; ask the user, or go on with something else.`,
  isError: true,
});

test('a denied edit stops it, in words that quote the reason, and leaves the file alone', async () => {
  const before = await schedule();
  const main = driver((call, nth) => (call.name === 'edit' && nth === 1 ? denied('not in this file') : undefined));
  const words = await main.say(SAMPLE_TASK);
  expect(words).toMatch(/You did not allow me to change `src\/schedule\.js`.*“not in this file”/);
  expect(words).not.toMatch(/is fixed/);
  expect(namesOf(main).at(-1)).toBe('edit');
  expect(await schedule()).toBe(before);

  expect(await main.say('No, leave it.')).toContain('I leave everything as it is');
  expect(await schedule()).toBe(before);
}, 60_000);

test('after a denied edit the person may still say yes', async () => {
  const main = driver((call, nth) => (call.name === 'edit' && nth === 1 ? denied() : undefined));
  await main.say(SAMPLE_TASK);
  const words = await main.say('I have thought about it: please do.');
  expect(words).toContain('After: 8 of 8 tests pass');
  expect(await schedule()).toContain('a - b');
}, 60_000);

test('without a sandbox it says so, and claims nothing', async () => {
  const nothing = { text: 'No sandbox, so the call did not run. No container engine answers.', isError: true };
  const words = await driver((call) => (call.name === 'bash' ? nothing : undefined)).say(SAMPLE_TASK);
  expect(words).toMatch(/I could not run the tests.*No container engine answers/);
  expect(changed()).toBe('');
});

test('a sandbox lost under the tests is tried again', async () => {
  const lost = {
    text: 'The sandbox this ran in is gone, and with it the result. It may have happened.',
    isError: true,
  };
  const main = driver((call, nth) => (call.name === 'bash' && nth === 1 ? lost : undefined));
  expect(await main.say(SAMPLE_TASK)).toContain('The bug is fixed.');
}, 60_000);

test('a sandbox that is lost again and again is given up', async () => {
  const lost = { text: 'The sandbox this ran in is gone, and with it the result.', isError: true };
  const main = driver((call) => (call.name === 'bash' ? lost : undefined));
  expect(await main.say(SAMPLE_TASK)).toMatch(/could not run the tests: .* ended “lost”/);
  expect(namesOf(main).filter((name) => name === 'bash')).toHaveLength(3);
});

test.each([true, false])(
  'an edit whose end nobody saw is looked up before it is made again (it was made: %s)',
  async (made) => {
    const main = driver((call, nth) => {
      if (call.name !== 'edit' || nth > 1) return undefined;
      if (made) {
        const path = join(stage.folder, String(call.input.file_path));
        const script =
          'const f=require("fs");const [p,a,b]=process.argv.slice(1);f.writeFileSync(p,f.readFileSync(p,"utf8").replace(a,()=>b))';
        execFileSync(process.execPath, [
          '-e',
          script,
          path,
          String(call.input.old_string),
          String(call.input.new_string),
        ]);
      }
      return {
        text: 'Drover was stopped while this ran, and nobody can say what became of it. It may have happened.',
        isError: true,
      };
    });
    expect(await main.say(SAMPLE_TASK)).toContain('After: 8 of 8 tests pass');
    expect(namesOf(main).filter((name) => name === 'edit')).toHaveLength(made ? 1 : 2);
    expect(await schedule()).toContain('.sort((a, b) => a - b).at(-1)');
  },
  60_000,
);

test('tests that still fail after the edit are told as they are', async () => {
  const main = driver((call) =>
    call.name === 'edit' ? { text: 'Edited src/schedule.js.', isError: false } : undefined,
  );
  const words = await main.say(SAMPLE_TASK);
  expect(words).toMatch(/did not do it: 1 of 8 tests still fails, now “a quick tea waits for a slow one”/);
  expect(namesOf(main)).not.toContain('create_agent');
}, 60_000);

test('where nothing fails there is nothing to fix', async () => {
  await writeFile(
    join(stage.folder, 'src/schedule.js'),
    (await schedule()).replace('.sort()', '.sort((a, b) => a - b)'),
  );
  const main = driver();
  expect(await main.say(SAMPLE_TASK)).toBe('All 8 tests pass here, so there is nothing for me to fix.');
  expect(namesOf(main)).not.toContain('edit');
}, 60_000);

test('a bug it does not know is not "fixed" by guessing', async () => {
  await writeFile(join(stage.folder, 'src/schedule.js'), (await schedule()).replace('.sort()', '.reverse()'));
  const main = driver();
  expect(await main.say(SAMPLE_TASK)).toMatch(/did not find the cause of “.+”\. I have changed nothing/);
  expect(namesOf(main)).not.toContain('edit');
}, 60_000);

test('a denied reviewer leaves the fix unreviewed, and says so', async () => {
  const main = driver((call) => (call.name === 'create_agent' ? denied() : undefined));
  const words = await main.say(SAMPLE_TASK);
  expect(words).toContain('fixed, but not reviewed');
  expect(words).toMatch(/Review: none, the call ended “denied”/);
}, 60_000);

test('words said while the tools ran are answered', async () => {
  const main = driver();
  const first = await main.say('[rehearsal:parallel]');
  expect(first).toContain('All three have come back');
  const withWords = [...main.messages];
  const results = withWords.findLast((message) => message.role === 'user');
  results?.content.push({ type: 'text', text: 'Mind the cat.' });
  withWords.pop();
  const { blocks } = await clientFor(stage.server.url).request(
    { model: 'drover-rehearsal', max_tokens: 999, system: 's', messages: withWords, tools: [] },
    { onStart: () => undefined, onDelta: () => undefined, onRetry: () => undefined },
    new AbortController().signal,
  );
  expect(blocks[0]?.text).toContain('“Mind the cat.”');
});
