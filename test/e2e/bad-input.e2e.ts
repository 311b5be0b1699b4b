import { execFileSync } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startRehearsal } from '../../src/rehearsal/server.ts';
import { Desk } from '../support/desk.ts';
import { eventsOf } from '../support/events.ts';
import { eventually } from '../support/eventually.ts';
import { allowUntil, hasEnded } from '../support/play.ts';

/** What the last result of the newest session tells the model. */
async function lastResult(desk: Desk): Promise<{ text: string; outcome: string | undefined }> {
  const record = (await desk.records()).findLast(({ event }) => event.type === 'agent.tool_result');
  return { text: JSON.stringify(record?.event), outcome: record?.local?.outcome };
}

const call = (tool: string, input: object): string => `[rehearsal:call tool=${tool}] ${JSON.stringify(input)}`;

describe('a window', () => {
  it('without a folder says that one is needed, and offers the sample', async () => {
    await using desk = await Desk.open({ empty: true });
    await desk.workbench.command('Drover: Start Session');
    const said = desk.workbench.notification(/none is open/);
    await said.waitFor({ timeout: 20_000 });
    await said.getByRole('button', { name: 'Open the Sample' }).waitFor({ timeout: 5_000 });
  });

  it('in Restricted Mode runs nothing, says so, and shows a view that says so', async () => {
    await using desk = await Desk.open({ trustAll: false });
    await desk.workbench.command('Drover: Start Session');
    await desk.workbench.notification(/Restricted Mode, so Drover runs nothing/).waitFor({ timeout: 20_000 });
    await desk.workbench.openSideBar();
    await desk.workbench.sideBarText(/This folder is open in Restricted Mode/).waitFor({ timeout: 10_000 });
    expect(await desk.sessions()).toEqual([]);
    expect(await desk.containers()).toEqual([]);
  });

  it('on a folder that can’t be written to starts no session, and says why', async () => {
    await using desk = await Desk.open({ change: makeReadOnly });
    try {
      await desk.workbench.command('Drover: Start Session');
      await desk.workbench.pick('Rehearsal');
      await desk.workbench.pick('Dev container');
      await desk.workbench.type('Fix it.');
      await desk.workbench.notification(/can.t write to .* did not start one/).waitFor({ timeout: 20_000 });
    } finally {
      await makeWritable(desk.folder);
    }
  });

  it('with a session whose log is broken shows the others, names the broken one, and deletes nothing', async () => {
    const broken = '{"v":1,"seq":0,"at":"not a record\n\0\0\0\0garbage';
    const id = 'sesn_broken';
    const file = (folder: string) => join(folder, '.drover', 'sessions', id, 'log.jsonl');
    await using desk = await Desk.open({
      change: async (folder) => {
        await mkdir(join(folder, '.drover', 'sessions', id), { recursive: true });
        await writeFile(file(folder), broken);
      },
    });
    await desk.start('[rehearsal:say] Hello.');
    await eventually('the session to end', 60_000, () => hasEnded(desk));
    await desk.workbench.openSideBar();
    const row = desk.workbench.treeRow(/sesn_broken/);
    await row.first().waitFor({ timeout: 20_000 });
    await desk.workbench.treeRow(/Hello/).first().waitFor({ timeout: 10_000 });
    await row.first().click();
    expect(await readFile(file(desk.folder), 'utf8')).toBe(broken);
    expect(await desk.sessions()).toHaveLength(2);
  });
});

describe('hands that can’t be had', () => {
  it('no engine: the call says which part is missing, and the session goes on', async () => {
    await using desk = await Desk.open({ env: { DOCKER_HOST: 'unix:///nonexistent/drover.sock' } });
    await desk.start(call('bash', { command: 'echo hi' }));
    await eventually('the session to end', 60_000, () => hasEnded(desk));
    const { text, outcome } = await lastResult(desk);
    expect(outcome).toBe('failed');
    expect(text).toMatch(/engine/i);
    expect(text).toContain('/nonexistent/drover.sock');
  });

  it('an image that does not exist: the call names it', async () => {
    const config = { image: 'drover-no-such-image:1' };
    await using desk = await Desk.open({ change: (folder) => devcontainer(folder, JSON.stringify(config)) });
    await desk.start(call('bash', { command: 'echo hi' }));
    await eventually('the session to end', 90_000, () => hasEnded(desk));
    const { text, outcome } = await lastResult(desk);
    expect(outcome).toBe('failed');
    expect(text).toContain('drover-no-such-image:1');
    await desk.panel.frame
      .getByText(/No sandbox could be made/)
      .first()
      .waitFor({ timeout: 10_000 });
  });

  it('a broken devcontainer.json: the call names the file and the line', async () => {
    const config = '{\n  "image": "drover-sample:latest",\n  "postCreateCommand" "true"\n}\n';
    await using desk = await Desk.open({ change: (folder) => devcontainer(folder, config) });
    await desk.start(call('bash', { command: 'echo hi' }));
    await eventually('the session to end', 60_000, () => hasEnded(desk));
    const { text, outcome } = await lastResult(desk);
    expect(outcome).toBe('failed');
    expect(text).toMatch(/devcontainer\.json, line 3/);
  });
});

describe('a model', () => {
  it('without a key: the session says so and offers a key and a rehearsal', async () => {
    await using desk = await Desk.open();
    await desk.start('Say hello.', { agent: 'Developer' });
    const notice = desk.panel.frame.locator('.notice', { hasText: /key/i });
    await notice.first().waitFor({ timeout: 60_000 });
    await desk.panel.frame.locator('vscode-button', { hasText: 'Set API Key' }).first().waitFor({ timeout: 5_000 });
    await desk.panel.frame.locator('vscode-button', { hasText: 'Rehearse' }).first().waitFor({ timeout: 5_000 });
  });

  it('that refuses the key, or does not know the model, is told apart in the session', async () => {
    const server = await startRehearsal({ apiKey: 'the-right-one', models: ['claude-sonnet-5-5'] });
    try {
      const settings = { 'drover.baseUrl': server.url };
      await using desk = await Desk.open({ settings, env: { ANTHROPIC_API_KEY: 'a-wrong-one' } });
      await desk.start('Say hello.', { agent: 'Developer' });
      const wrong = await eventually(
        'the error',
        60_000,
        async () => eventsOf(await desk.records(), 'session.error')[0],
      );
      expect(wrong.error.message).toMatch(/key/i);
      expect(JSON.stringify(await desk.records())).not.toContain('a-wrong-one');
    } finally {
      await server.close();
    }
    const other = await startRehearsal({ models: ['claude-of-another-name'] });
    try {
      const settings = { 'drover.baseUrl': other.url };
      await using desk = await Desk.open({ settings, env: { ANTHROPIC_API_KEY: 'any' } });
      await desk.start('Say hello.', { agent: 'Developer' });
      const unknown = await eventually(
        'the error',
        60_000,
        async () => eventsOf(await desk.records(), 'session.error')[0],
      );
      expect(unknown.error.message).toContain('claude-sonnet-5-5');
    } finally {
      await other.close();
    }
  });
});

describe('what a model says and a tool prints', () => {
  let desk: Desk;
  beforeAll(async () => {
    desk = await Desk.open();
  });
  afterAll(() => desk?.[Symbol.asyncDispose]());

  it('malformed tool input goes back to the model as an error, and the session goes on', async () => {
    await desk.start('[fault:malformed_tool times=1] [rehearsal:parallel] Go.');
    await eventually('the session to end', 90_000, () => hasEnded(desk));
    const records = await desk.records();
    const first = records.find(({ event }) => event.type === 'agent.tool_result');
    expect(first?.local?.outcome).toBe('failed');
    expect(JSON.stringify(first?.event)).toMatch(/JSON|input/);
    const refused = eventsOf(records, 'agent.tool_use')[0];
    expect(eventsOf(records, 'drover.tool_started').some(({ tool_use_id }) => tool_use_id === refused?.id)).toBe(false);
  });

  it('a tool that does not exist is an error result that names those that do', async () => {
    await desk.start('[fault:unknown_tool times=1] [rehearsal:parallel] Go.');
    await eventually('the session to end', 90_000, () => hasEnded(desk));
    const first = (await desk.records()).find(({ event }) => event.type === 'agent.tool_result');
    expect(JSON.stringify(first?.event)).toContain('teleport');
    expect(JSON.stringify(first?.event)).toContain('bash');
  });

  it('10 MB of output: head and tail for the model, the whole beside the log, and a panel that stays alive', async () => {
    await desk.start('[rehearsal:big-output] Go.');
    await eventually('the session to end', 120_000, () => hasEnded(desk));
    const { text, outcome } = await lastResult(desk);
    expect(outcome).toBe('ok');
    expect(text.length).toBeLessThan(400_000);
    const record = (await desk.records()).findLast(({ event }) => event.type === 'agent.tool_result');
    const [blob] = record?.local?.blobs ?? [];
    expect(blob?.bytes).toBe(10 * 1024 * 1024);
    expect(text).not.toContain('are lost');
    const log = await stat(await logFile(desk));
    expect(log.size).toBeLessThan(1024 * 1024);
    await desk.panel.message(/The command ended ok/).waitFor({ timeout: 20_000 });
  });

  it('a binary file is named as one, and none of its bytes reach the model or the panel', async () => {
    await desk.start('[rehearsal:binary] Go.');
    await eventually('the session to end', 90_000, () => hasEnded(desk));
    const { text } = await lastResult(desk);
    expect(text).toMatch(/binary/i);
    expect(text).not.toContain('\\u0000');
    expect(JSON.stringify(await desk.records())).not.toContain('\\u0000');
  });

  it('a question in one session does not stop another', async () => {
    await desk.start(call('edit', { file_path: 'README.md', old_string: 'teatime', new_string: 'tea' }));
    await desk.panel.card(/README\.md/).waitFor({ timeout: 60_000 });
    await desk.start('[rehearsal:say] Meanwhile.');
    await eventually('the second session to end', 60_000, () => hasEnded(desk));
    await desk.workbench.statusBarItem(/1/).first().waitFor({ timeout: 10_000 });
    expect(await allowUntil(desk, null, 10_000)).toBeNull();
  });
});

async function devcontainer(folder: string, text: string): Promise<void> {
  await mkdir(join(folder, '.devcontainer'), { recursive: true });
  await writeFile(join(folder, '.devcontainer', 'devcontainer.json'), text);
}

async function logFile(desk: Desk): Promise<string> {
  const folder = join(desk.folder, '.drover', 'sessions');
  const logs = await Promise.all(
    (await readdir(folder)).map(async (id) => {
      const path = join(folder, id, 'log.jsonl');
      return { path, born: (await stat(path)).birthtimeMs };
    }),
  );
  return logs.sort((a, b) => b.born - a.born)[0]?.path ?? '';
}

/** Root may write anywhere, so for root it has to be the file system that says no. */
async function makeReadOnly(folder: string): Promise<void> {
  if (process.getuid?.() !== 0) return await chmod(folder, 0o555);
  execFileSync('mount', ['--bind', folder, folder]);
  execFileSync('mount', ['-o', 'remount,bind,ro', folder]);
}

async function makeWritable(folder: string): Promise<void> {
  if (process.getuid?.() !== 0) return await chmod(folder, 0o755);
  execFileSync('umount', ['--lazy', folder]);
}
