import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { plainText } from '../../../src/protocol/content.ts';
import { mint, type ThreadId } from '../../../src/protocol/ids.ts';
import { draft } from '../../../src/protocol/record.ts';
import { noUsage } from '../../../src/protocol/usage.ts';
import { noDesk } from '../../../src/tools/desk.ts';
import { createToolbox } from '../../../src/tools/toolbox.ts';
import { Rig } from '../harness/rig.ts';

/** Puts a whole reply of the model into the log, with one call in it that is allowed, and works until the session rests. */
async function called(rig: Rig, name: string, input: Record<string, unknown>, thread: ThreadId = rig.primary) {
  const [span, id] = [mint.event(), mint.event()];
  const { agentName } = (await rig.state()).threads.get(thread) ?? { agentName: 'Tester' };
  await rig.append(
    rig.message('[rehearsal:say] Go on.'),
    draft('session.status_running', {}),
    draft('session.thread_status_running', { session_thread_id: thread, agent_name: agentName }, { thread }),
    draft('span.model_request_start', {}, { thread, id: span, local: { model: 'drover-rehearsal' } }),
    draft(
      'agent.tool_use',
      { name, input, evaluated_permission: 'allow', evaluation: { type: 'always_allow' } },
      { thread, id, local: { reply: { span, index: 0 }, model_tool_use_id: `toolu_${id}` } },
    ),
    draft(
      'span.model_request_end',
      { model_request_start_id: span, is_error: false, model_usage: noUsage() },
      { thread, local: { stop_reason: 'tool_use', cost_usd: 0 } },
    ),
  );
  await rig.harness.wake(rig.session, 'a test');
  const result = (await rig.state()).calls.get(id)?.result;
  return { outcome: result?.outcome, said: plainText(result?.content), result };
}

describe('what a thread last saw of a file', () => {
  const edit = (old_string: string, new_string: string) => ({ file_path: 'a.txt', old_string, new_string });

  it('is in the log: after a crash a file that a person changed meanwhile is still not edited', async () => {
    const rig = await Rig.open();
    const path = join(rig.folder, 'a.txt');
    await writeFile(path, 'one\ntwo\n');
    await rig.run('[rehearsal:say] Begin.');
    const read = await called(rig, 'read', { file_path: './a.txt' });
    expect(read.result).toMatchObject({ realPath: 'a.txt', fileSha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect((await called(rig, 'edit', edit('one', 'eins'))).outcome).toBe('ok');
    await rig.restart();
    // What it wrote itself it has seen.
    expect((await called(rig, 'edit', edit('two', 'zwei'))).outcome).toBe('ok');
    await rig.restart();
    await writeFile(path, 'eins\nzwei\nmine\n');
    const refused = await called(rig, 'edit', edit('zwei', 'zwo'));
    expect(refused.outcome).toBe('failed');
    expect(refused.said).toContain('was changed since you last read or wrote it');
    expect((await called(rig, 'write', { file_path: 'a.txt', content: 'gone' })).outcome).toBe('failed');
    expect(await readFile(path, 'utf8')).toBe('eins\nzwei\nmine\n');
    await called(rig, 'read', { file_path: 'a.txt' });
    expect((await called(rig, 'edit', edit('zwei', 'zwo'))).outcome).toBe('ok');
  });

  it('counts what a command did to it as a change', async () => {
    const rig = await Rig.open();
    await writeFile(join(rig.folder, 'a.txt'), 'one\n');
    await rig.run('[rehearsal:say] Begin.');
    await called(rig, 'read', { file_path: 'a.txt' });
    expect((await called(rig, 'bash', { command: 'echo two >> a.txt' })).outcome).toBe('ok');
    expect((await called(rig, 'edit', edit('one', 'eins'))).said).toContain('by a person or by a command');
  });

  it('asks the editor when it writes, not when it was allowed', async () => {
    let unsaved = false;
    const desk = { ...noDesk, unsaved: async () => unsaved };
    const rig = await Rig.open({ deps: { toolbox: (of) => createToolbox({ ...of, desk }) } });
    await writeFile(join(rig.folder, 'a.txt'), 'one\n');
    await rig.run('[rehearsal:say] Begin.');
    expect((await called(rig, 'edit', edit('one', 'two'))).outcome).toBe('ok');
    unsaved = true;
    const refused = await called(rig, 'edit', edit('two', 'three'));
    expect(refused.said).toContain("open in the person's editor");
    expect(await readFile(join(rig.folder, 'a.txt'), 'utf8')).toBe('two\n');
  });

  it('does not ask it for a session that works on a copy', async () => {
    const desk = { ...noDesk, unsaved: async () => true };
    const rig = await Rig.open({
      deps: { toolbox: (of) => createToolbox({ ...of, workspace: 'isolated', desk }) },
    });
    await rig.run('[rehearsal:say] Begin.');
    expect((await called(rig, 'write', { file_path: 'a.txt', content: 'x' })).outcome).toBe('ok');
  });
});

describe('a document that is read', () => {
  it('is a blob beside the log, and whole in what the model is sent', async () => {
    const rig = await Rig.open();
    const pdf = Buffer.from('%PDF-1.4\n/Type /Page\ntrailer\n<<>>\n%%EOF\n');
    await writeFile(join(rig.folder, 'a.pdf'), pdf);
    await rig.run('[rehearsal:say] Begin.');
    const read = await called(rig, 'read', { file_path: 'a.pdf' });
    expect(read.outcome).toBe('ok');
    expect(read.result?.content).toMatchObject([{ type: 'document', source: { type: 'file' } }]);
    const sent = JSON.stringify(rig.rehearsal.requests.at(-1)?.body);
    expect(sent).toContain(`"media_type":"application/pdf","data":"${pdf.toString('base64')}"`);
    expect((await rig.state()).status).toBe('idle');
  });
});
