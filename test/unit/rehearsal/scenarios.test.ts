import { execFileSync } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startRehearsal } from '../../../src/rehearsal/server.ts';
import { clientFor } from '../model/ask.ts';
import { Driver, eachOnItsOwnSample, type Meddle } from './driver.ts';

const stage = eachOnItsOwnSample();
const driver = (meddle?: Meddle) => new Driver(clientFor(stage.server.url), stage.folder, meddle);

test('any stage.folder can be looked around in, and the summary is made of what was found', async () => {
  const words = await driver().say('What is this?');
  expect(words).toContain(stage.folder);
  expect(words).toContain('Its README begins: “# teatime');
  const files = execFileSync('git', ['ls-files'], { cwd: stage.folder, encoding: 'utf8' })
    .split('\n')
    .filter((path) => path && !/(^|\/)\./.test(path));
  expect(words).toContain(`The listing names ${files.length} files`);
});

test('a stage.folder without a README, and a command that failed, are told as they are', async () => {
  await rm(join(stage.folder, 'README.md'));
  const main = driver((call) => (call.name === 'bash' ? { text: 'The command timed out.', isError: true } : undefined));
  const words = await main.say('[rehearsal:look-around]');
  expect(words).not.toContain('README begins');
  expect(words).toContain('`bash` ended timed out');
});

test('say and echo say what was said, turn after turn', async () => {
  const main = driver();
  expect(await main.say('[rehearsal:say] Good morning')).toBe('Good morning');
  expect(await main.say('and good night')).toBe('and good night');
  expect(await driver().say('[rehearsal:echo] hello')).toBe('hello');
});

test('three calls come in one reply', async () => {
  const main = driver();
  const words = await main.say('[rehearsal:parallel]');
  const calls = main.messages[1]?.content.filter((block) => block.type === 'tool_use');
  expect(calls).toHaveLength(3);
  expect(new Set(calls?.map((call) => call.id)).size).toBe(3);
  expect(words).toMatch(/ended ok: slow[\s\S]*ended ok: quick/);
});

test('a long command leaves its trace, and its end is told', async () => {
  expect(await driver().say('[rehearsal:long-command seconds=0]')).toContain('“done after 0 s”');
  expect(await readFile(join(stage.folder, 'long-command.txt'), 'utf8')).toBe('started\n');
});

test('a long command whose end nobody saw is looked into, not run again', async () => {
  let made = 0;
  const main = driver((call) => {
    if (call.name !== 'bash') return undefined;
    made += 1;
    execFileSync('bash', ['-c', 'echo started >> long-command.txt'], { cwd: stage.folder });
    return { text: 'Drover was stopped while this ran, and nobody can say what became of it.', isError: true };
  });
  expect(await main.say('[rehearsal:long-command]')).toMatch(/started 1 time, and I did not see it end/);
  expect(made).toBe(1);
});

test('ten megabytes are printed, and the model says how much of it reached it', async () => {
  const main = driver((call) =>
    String(call.input.command).includes('head -c 10485760')
      ? { text: 'a line\n[cut]\nthe end', isError: false }
      : undefined,
  );
  expect(await main.say('[rehearsal:big-output]')).toContain('20 characters');
  expect(await driver().say('[rehearsal:big-output bytes=1000]')).toContain('1,000 characters');
});

test('a binary file is printed and read', async () => {
  const main = driver();
  await main.say('[rehearsal:binary]');
  expect(main.calls.map((call) => call.name)).toEqual(['bash', 'read']);
});

test('many turns are as many as asked for', async () => {
  const main = driver();
  expect(await main.say('[rehearsal:many-turns n=5]')).toBe('5 steps of 5 went well.');
  expect(main.calls).toHaveLength(5);
});

test('any call can be had, and its end is told', async () => {
  expect(await driver().say('[rehearsal:call tool=bash] {"command": "echo hi"}')).toBe('- `bash` ended ok: hi');
  expect(await driver().say('[rehearsal:call tool=teleport] {}')).toContain('`teleport` ended failed');
  expect(await driver().say('[rehearsal:call tool=bash] nonsense')).toContain('I need a JSON object');
});

test('several children are started at once, each with its own task', async () => {
  const main = driver();
  const words = await main.say('[rehearsal:agents n=2]');
  expect(main.children).toHaveLength(2);
  expect(words.match(/ended ok: 1 step of 1 went well/g)).toHaveLength(2);
});

test('after its end a piece says that it is over, and another can be chosen', async () => {
  const main = driver();
  await main.say('[rehearsal:parallel]');
  expect(await main.say('What else?')).toContain('That was my whole piece');
  expect(await main.say('[rehearsal:say] again')).toBe('again');
});

test('a piece that does not exist is answered with those that do', async () => {
  expect(await driver().say('[rehearsal:hamlet]')).toMatch(/no piece named “hamlet”.*`fix-the-sample`/);
});

test('the server can choose the piece itself', async () => {
  const other = await startRehearsal({ scenario: 'say' });
  try {
    expect(await new Driver(clientFor(other.url), stage.folder).say('anything at all')).toBe('anything at all');
  } finally {
    await other.close();
  }
});
