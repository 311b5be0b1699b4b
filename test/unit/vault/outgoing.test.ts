import { describe, expect, it } from 'vitest';
import { type EventId, mint } from '../../../src/protocol/ids.ts';
import type { Preview } from '../../../src/protocol/panel.ts';
import { createGuard } from '../../../src/vault/outgoing.ts';
import { Redactor } from '../../../src/vault/redactor.ts';
import { Rig } from '../harness/rig.ts';

const SECRET = 'tok_4f8E7d6c5B4a';

function guardOf(...values: string[]) {
  const redactor = new Redactor();
  redactor.know('k', { credential_id: null, vault_id: null, name: 'KEY' }, values);
  return createGuard({ redactor, maskKey: Buffer.from('key'), workFolder: ({ workspaceFolder }) => workspaceFolder });
}

describe('a request to the model', () => {
  it('has no value in it, wherever one stood, and thinking that held one is left out whole', () => {
    const thinking = { type: 'thinking', thinking: `hm, ${SECRET}`, signature: 's' };
    const fine = { type: 'thinking', thinking: 'hm', signature: 's' };
    const { request, alarms } = guardOf(SECRET).request({
      system: `use ${SECRET}`,
      tools: [{ name: 'bash', description: SECRET }],
      messages: [
        { role: 'user', content: [{ type: 'text', text: `it is ${SECRET}` }] },
        { role: 'assistant', content: [thinking, fine] },
      ],
    });
    expect(JSON.stringify(request)).not.toContain(SECRET);
    expect(request.messages[1]?.content).toEqual([
      { type: 'text', text: '[redacted: thinking that held a secret]' },
      fine,
    ]);
    expect(alarms.map(({ event }) => event)).toMatchObject([
      { type: 'drover.secret_alarm', where: 'model_request', name: 'KEY', count: 4 },
    ]);
  });

  it('is the very same if there is nothing in it', () => {
    const given = { system: 'a', tools: [], messages: [] };
    expect(guardOf(SECRET).request(given)).toEqual({ request: given, alarms: [] });
    expect(guardOf(SECRET).request(given).request).toBe(given);
  });

  it('goes out without a value that an older log has in it, and the log gets an alarm', async () => {
    const rig = await Rig.open({ deps: { guard: guardOf('pasted-long-ago') } });
    await rig.run('[rehearsal:say] remember pasted-long-ago');
    const sent = JSON.stringify(rig.rehearsal.requests);
    expect(sent).toContain('remember [redacted: KEY]');
    expect(sent).not.toContain('pasted-long-ago');
    expect(await rig.types()).toContain('drover.secret_alarm');
  });
});

describe('previews', () => {
  it('have no value in them, also where it comes in pieces of several calls side by side', () => {
    const seen: Preview[] = [];
    const send = guardOf(SECRET).previews((preview) => seen.push(preview));
    const [thread, one, two] = [mint.thread(), mint.event(), mint.event()];
    const output = (id: EventId, text: string) => send({ type: 'output', thread, id, text });
    output(one, 'a: tok_4f8');
    output(two, 'b: tok_4f8E7d6c');
    output(one, 'E7d6c5B4a.');
    output(two, 'nothing');
    const shown = (id: EventId) =>
      seen.flatMap((preview) => (preview.type === 'output' && preview.id === id ? preview.text : [])).join('');
    expect(shown(one)).toBe('a: [redacted: KEY].');
    expect(shown(two)).toBe('b: tok_4f8E7d6cnothing');
  });

  it('pass through as they are while nothing is known', () => {
    const seen: Preview[] = [];
    const send = guardOf().previews((preview) => seen.push(preview));
    const preview: Preview = { type: 'output', thread: mint.thread(), id: mint.event(), text: 'x' };
    send(preview);
    expect(seen[0]).toBe(preview);
  });
});
