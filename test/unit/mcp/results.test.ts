import { describe, expect, it } from 'vitest';
import { said } from '../../support/mcp-server.ts';
import { ALLOW, callTask, onlyCall, open, serve, words } from './kit.ts';

describe('a result', () => {
  it('keeps text, images and structure, is capped like any output, and says itself that it is an error', async () => {
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    const wiki = await serve({
      mixed: {
        act: () => ({
          content: [
            { type: 'text', text: 'look:' },
            { type: 'image', data: png, mimeType: 'image/png' },
            { type: 'resource', resource: { uri: 'file:///a.txt', text: 'inside' } },
            { type: 'resource_link', uri: 'https://wiki.test/b', name: 'b' },
            { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
          ],
          structuredContent: { answer: 42 },
        }),
      },
      big: { act: () => said(`${'a line of the page\n'.repeat(20_000)}the end`) },
      wrong: { act: () => ({ ...said('no such page'), isError: true }) },
    });
    const rig = await open({ wiki }, { default_config: ALLOW });
    const mixed = onlyCall(await rig.run(callTask('mcp__wiki__mixed')));
    expect(words(mixed)).toBe(
      'look:\n(image)\n[file:///a.txt]\ninside\n[b: https://wiki.test/b]\n[Audio, audio/wav, 3 bytes: it can\'t be shown.]\n{\n  "answer": 42\n}',
    );
    const big = onlyCall(await rig.say(callTask('mcp__wiki__big')));
    expect(big.result?.outcome).toBe('ok');
    expect(words(big).length).toBeLessThan(40_000);
    expect(big.result?.blobs[0]?.bytes).toBe(20_000 * 19 + 7);
    const wrong = onlyCall(await rig.say(callTask('mcp__wiki__wrong')));
    expect(wrong.result).toMatchObject({ outcome: 'failed', isError: true });
    expect(words(wrong)).toBe('no such page');
  });

  it('of a server that dies in the middle of a call is unknown, and the session goes on', async () => {
    const wiki = await serve({ slow: { act: () => wiki.down().then(() => said('never heard')) } });
    const rig = await open({ wiki }, { default_config: ALLOW });
    const state = await rig.run(callTask('mcp__wiki__slow'));
    expect(onlyCall(state).result).toMatchObject({ outcome: 'unknown', isError: true });
    expect(words(onlyCall(state))).toMatch(/may have happened/);
    expect(state.stopReason).toEqual({ type: 'end_turn' });
  });

  it('of a server that forgot us comes all the same: the call had not run, so it is made again', async () => {
    const wiki = await serve({ echo: { act: ({ text }) => said(String(text)) } });
    const rig = await open({ wiki });
    const asking = await rig.run(callTask('mcp__wiki__echo', { text: 'still here' }));
    wiki.forget();
    expect(words(onlyCall(await rig.answer(onlyCall(asking).id, 'allow')))).toBe('still here');
    expect(wiki.calls).toHaveLength(1);
  });

  it('that does not come in time is given up, but not while the server tells how far it is', async () => {
    const wiki = await serve({
      silent: {
        act: (_, { signal }) =>
          new Promise((resolve) => signal.addEventListener('abort', () => resolve(said('stopped')))),
      },
      telling: {
        async act(_, { progress }) {
          for (let n = 1; n <= 6; n += 1) {
            await progress(n, 6, 'reading');
            await new Promise((resolve) => setTimeout(resolve, 500));
          }
          return said('read');
        },
      },
    });
    const rig = await open({ wiki }, { default_config: ALLOW }, { limits: { silence: 2_000 } });
    const output: string[] = [];
    rig.harness.onPreview((_, preview) => void (preview.type === 'output' && output.push(preview.text)));
    expect(onlyCall(await rig.run(callTask('mcp__wiki__silent'))).result?.outcome).toBe('timed_out');
    expect(onlyCall(await rig.say(callTask('mcp__wiki__telling'))).result?.outcome).toBe('ok');
    expect(output[0]).toBe('reading (1 of 6)\n');
  });
});
