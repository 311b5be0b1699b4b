import { execFileSync } from 'node:child_process';
import { readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { mint } from '../../../src/protocol/ids.ts';
import { draft } from '../../../src/protocol/record.ts';
import { openQuestions } from '../../../src/session/fold-question.ts';
import { fileWithPlaceholder } from '../../../src/vault/file-tripwire.ts';
import { createGuard } from '../../../src/vault/outgoing.ts';
import { placeholderFor } from '../../../src/vault/placeholder.ts';
import { Redactor } from '../../../src/vault/redactor.ts';
import { Rig } from '../harness/rig.ts';
import { temporaryFolder } from './kit.ts';

const placeholder = placeholderFor(mint.session(), mint.credential());
const guard = createGuard({
  redactor: new Redactor(),
  maskKey: Buffer.from('key'),
  workFolder: ({ workspaceFolder }) => workspaceFolder,
});

/** A model that makes one call, which needs no approval. */
async function calling(name: string, input: Record<string, unknown>) {
  const rig = await Rig.open({
    deps: { guard },
    agent: {
      tools: [{ type: 'agent_toolset_20260401', default_config: { permission_policy: { type: 'always_allow' } } }],
    },
  });
  await writeFile(join(rig.folder, 'notes.md'), 'notes\n');
  await rig.run(`[rehearsal:call tool=${name}] ${JSON.stringify(input)}`);
  return rig;
}

describe('a placeholder that a file tool would write', () => {
  it('stops the session before the call runs, and a yes lets it go on', async () => {
    const rig = await calling('write', { file_path: 'notes.md', content: `token: ${placeholder}\n` });
    const stopped = await rig.state();
    const [question] = openQuestions(stopped);
    expect(question?.why).toMatch(/write would write a credential’s placeholder into notes\.md/);
    expect([...stopped.calls.values()].map((call) => call.execution)).toEqual([null]);
    expect([stopped.status, stopped.stopReason]).toEqual([
      'idle',
      { type: 'requires_action', event_ids: [question?.id] },
    ]);
    expect(await readFile(join(rig.folder, 'notes.md'), 'utf8')).toBe('notes\n');
    await rig.say('go on please');
    expect([...(await rig.state()).calls.values()][0]?.execution, 'a message is no answer').toBeNull();
    const after = await rig.answer(question?.id ?? mint.event(), 'allow');
    expect([...after.calls.values()][0]?.result?.outcome).toBe('ok');
    expect(await readFile(join(rig.folder, 'notes.md'), 'utf8')).toContain(placeholder);
  });

  it('ends the turn with a no: the call never runs', async () => {
    const rig = await calling('write', { file_path: 'notes.md', content: placeholder });
    const [question] = openQuestions(await rig.state());
    const after = await rig.answer(question?.id ?? mint.event(), 'deny');
    expect([...after.calls.values()].map((call) => [call.execution, call.result?.outcome])).toEqual([
      [null, 'cancelled'],
    ]);
    expect([after.status, after.stopReason]).toEqual(['idle', { type: 'end_turn' }]);
    expect(await readFile(join(rig.folder, 'notes.md'), 'utf8')).toBe('notes\n');
  });

  it('is none in a command: there it is on its way to the proxy, which looks itself', async () => {
    const rig = await calling('bash', { command: `echo ${placeholder}` });
    expect(openQuestions(await rig.state())).toEqual([]);
  });
});

describe('a placeholder in a changed file', () => {
  it('is found, by plain files alone: no link is followed and no pipe waited for', async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'outside'), placeholder);
    await writeFile(join(folder, 'a.txt'), 'nothing');
    await writeFile(join(folder, 'b.bin'), Buffer.concat([Buffer.alloc(1000, 0xff), Buffer.from(placeholder)]));
    await symlink(join(folder, 'outside'), join(folder, 'link'));
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    expect(await fileWithPlaceholder(folder, ['link', 'pipe', 'a.txt', 'missing', '.'])).toBeNull();
    expect(await fileWithPlaceholder(folder, ['a.txt', 'b.bin'])).toBe('b.bin');
  });

  it('stops the session when a checkpoint tells of the change, once for a file', async () => {
    const rig = await Rig.open({
      deps: {
        guard,
        checkpoints: {
          // What takes checkpoints is tested where it is; here one is told of.
          follow: (owner) => ({
            warm: () => undefined,
            before: async () => undefined,
            async after(call) {
              await writeFile(join(rig.folder, 'leak.txt'), placeholder);
              const checkpoint = draft('drover.checkpoint', {
                commit: '0'.repeat(40),
                parent: null,
                why: 'calls',
                tool_use_ids: [call],
                files_changed: 1,
                files: [{ path: 'leak.txt', change: 'added' }],
                skipped: [],
                skipped_count: 0,
              });
              await owner.record([checkpoint]);
              await owner.record([checkpoint]);
            },
            close: async () => undefined,
          }),
        },
      },
      agent: {
        tools: [{ type: 'agent_toolset_20260401', default_config: { permission_policy: { type: 'always_allow' } } }],
      },
    });
    await rig.run('[rehearsal:call tool=bash] {"command": "true"}');
    const state = await rig.until('the question', (now) => openQuestions(now).length > 0);
    expect(openQuestions(state)).toMatchObject([
      { kind: 'canary', why: expect.stringContaining('in leak.txt now'), call: [...state.calls.keys()][0] },
    ]);
  });
});

describe('a mask', () => {
  const token = ['gh', 'p_', 'aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYaB3d'].join('');

  it('stands in place of what looks like a secret, in the log and in what the model reads', async () => {
    const rig = await calling('bash', { command: `echo TOKEN ${token.slice(0, 10)}""${token.slice(10)}` });
    const [call] = (await rig.state()).calls.values();
    expect(call?.result?.masked).toMatchObject([{ kind: 'GitHub token', count: 1 }]);
    const said = JSON.stringify([await rig.records(), rig.rehearsal.requests]);
    expect(said).toContain('[masked: GitHub token, 40 characters; a person can reveal it]');
    expect(said).not.toContain(token);
  });

  it('is lifted by a person for what comes after', async () => {
    const command = `echo ${token.slice(0, 10)}""${token.slice(10)}`;
    const rig = await calling('bash', { command });
    const [call] = (await rig.state()).calls.values();
    const [found] = call?.result?.masked ?? [];
    await rig.append(draft('drover.secret_revealed', { finding: found?.finding ?? '', kind: found?.kind ?? '' }));
    await rig.say(`[rehearsal:call tool=bash] ${JSON.stringify({ command })}`);
    const results = [...(await rig.state()).calls.values()].map((one) => JSON.stringify(one.result?.content));
    expect(results[0]).not.toContain(token);
    expect(results[1]).toContain(token);
  });

  it('is never written back over the secret: the call is refused, and the model is told why', async () => {
    const content = 'TOKEN=[masked: GitHub token, 40 characters; a person can reveal it]\n';
    const rig = await calling('write', { file_path: 'notes.md', content });
    const [call] = (await rig.state()).calls.values();
    expect(call?.result?.outcome).toBe('failed');
    expect(JSON.stringify(call?.result?.content)).toContain('the secret would be lost');
    expect(await readFile(join(rig.folder, 'notes.md'), 'utf8')).toBe('notes\n');
  });
});
