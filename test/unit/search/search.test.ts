import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Hit } from '../../../src/log/search/hits.ts';
import { SearchIndex } from '../../../src/log/search/search.ts';
import { text } from '../../../src/protocol/content.ts';
import { mint, type SessionId, type ThreadId } from '../../../src/protocol/ids.ts';
import { type Draft, draft } from '../../../src/protocol/record.ts';
import { Child } from '../log/child.ts';
import { addBytes, closedSession, created, newSession, opened, said, temporary } from '../log/kit.ts';

/** A fresh index, as a new window has it. */
async function found(root: string, typed: string, limit = 50): Promise<Hit[]> {
  const index = new SearchIndex(root);
  await index.refresh();
  return index.search(typed, { limit });
}

const previews = (hits: readonly Hit[]): string[] => hits.map(({ preview }) => preview);
const matched = ({ preview, match }: Hit): string => preview.slice(...match);

/** One session in a store of its own with these records after its first. */
async function sessionWith(drafts: (primary: ThreadId) => Draft[]): Promise<{ root: string; id: SessionId }> {
  const root = join(await temporary(), '.drover');
  const store = opened({ root });
  const id = mint.session();
  const primary = mint.thread();
  const writer = await store.create(id, [created(id, primary)]);
  await writer.append(drafts(primary));
  await writer.release();
  return { root, id };
}

describe('A search', () => {
  it('finds what was said, given to a tool, put out by one, thought, denied and what failed', async () => {
    const call = mint.event();
    const { root, id } = await sessionWith((thread) => [
      draft('user.message', { content: [text('please mend the mulberry')] }, { thread }),
      draft('agent.message', { content: [text('I look at the quince first')] }, { thread }),
      draft('agent.thinking', {}, { thread, local: { raw: { type: 'thinking', thinking: 'perhaps a medlar' } } }),
      draft('agent.tool_use', { name: 'bash', input: { nested: { deep: ['grep loquat'] } } }, { thread, id: call }),
      draft('user.tool_confirmation', { tool_use_id: call, result: 'deny', deny_message: 'use a sorb' }, { thread }),
      draft('agent.tool_result', { tool_use_id: call, content: [text('1 tamarind')] }, { thread }),
      draft(
        'session.error',
        { error: { type: 'model_overloaded_error', message: 'a durian', retry_status: { type: 'terminal' } } },
        { thread },
      ),
    ]);
    const kinds = { mulberry: 'user', quince: 'agent', medlar: 'thinking', loquat: 'tool input' };
    const more = { sorb: 'answer', tamarind: 'tool output', durian: 'error' };
    for (const [word, kind] of Object.entries({ ...kinds, ...more })) {
      const hits = await found(root, word);
      expect(hits.map((hit) => [hit.session, hit.kind, hit.agent, hit.title, matched(hit)])).toEqual([
        [id, kind, 'Developer', 'A session', word],
      ]);
    }
    const [input] = await found(root, 'loquat');
    expect(input?.event).toBe(call);
  });

  it('finds a word that is only in the output of a tool of a subagent, and names the subagent', async () => {
    const child = mint.thread();
    const { root } = await sessionWith((thread) => [
      draft('session.thread_created', { session_thread_id: child, agent_name: 'Verifier' }, { thread }),
      draft('agent.tool_result', { tool_use_id: mint.event(), content: [text('ok 3 - persimmon')] }, { thread: child }),
    ]);
    const hits = await found(root, 'persimmon');
    expect(hits.map(({ agent, thread, kind }) => [agent, thread, kind])).toEqual([['Verifier', child, 'tool output']]);
  });

  it('finds a word in the middle of a spilled output, which the log itself only has the ends of', async () => {
    const long = `${'noise '.repeat(20_000)}the carambola is here ${'noise '.repeat(20_000)}`;
    const { root, id } = await sessionWith((thread) => [
      draft('agent.tool_result', { tool_use_id: mint.event(), content: [text(long)] }, { thread }),
    ]);
    expect(readFileSync(join(root, 'sessions', id, 'log.jsonl'), 'utf8')).not.toContain('carambola');
    const hits = await found(root, 'carambola');
    expect(hits.map(matched)).toEqual(['carambola']);
    expect(hits[0]?.preview).toContain('noise the carambola is here noise');
  });

  it('takes binary blobs for what they are', async () => {
    const root = join(await temporary(), '.drover');
    const id = mint.session();
    const writer = await opened({ root }).create(id, [created(id, mint.thread())]);
    const blob = await writer.putBlob(Buffer.from('\0\0 rambutan'), 'text/plain');
    await writer.append([
      draft(
        'agent.tool_result',
        { tool_use_id: mint.event(), content: [text('binary')] },
        { local: { blobs: [blob] } },
      ),
    ]);
    expect(await found(root, 'rambutan')).toEqual([]);
    expect(await found(root, 'binary')).toHaveLength(1);
  });

  it('finds parts of words, in any case, and several words wherever they stand', async () => {
    const { root } = await closedSession(['const panel = vscode.window.createWebviewPanel(x)', 'a Panel of experts']);
    expect(previews(await found(root, 'webviewPANEL'))).toEqual(['const panel = vscode.window.createWebviewPanel(x)']);
    expect(previews(await found(root, 'experts panel'))).toEqual(['a Panel of experts']);
    expect(await found(root, 'panel window experts')).toEqual([]);
    expect(previews(await found(root, 'window.createWeb'))).toHaveLength(1);
    expect(await found(root, 'window createWeb.')).toEqual([]);
  });

  it('takes what is in quotes as it stands, whatever blanks are between', async () => {
    const { root } = await closedSession(['one two three', 'two one', 'one\n    two']);
    expect(previews(await found(root, '"one two"'))).toEqual(['one two', 'one two three']);
    expect(await found(root, 'one two')).toHaveLength(3);
  });

  it('finds signs, other scripts, accents in either spelling, and what is special in a pattern', async () => {
    const { root } = await closedSession([
      'a => b',
      '日本語の検索',
      'cafe\u0301 au lait',
      'f(x) [1] $HOME\\bin',
      'ÄRGER',
    ]);
    for (const typed of ['=>', '検索', 'caf\u00e9', 'f(x)', '[1]', '$HOME\\bin', 'ärger']) {
      expect(await found(root, typed), typed).toHaveLength(1);
    }
    expect(await found(root, '(')).toHaveLength(1);
    expect(await found(root, '   ')).toEqual([]);
    expect(await found(root, '""')).toEqual([]);
  });

  it('does not see the colours of a terminal', async () => {
    const { root } = await closedSession(['\u001b[31mred\u001b[39m \u001b[1mbold\u001b[22m words']);
    expect(previews(await found(root, '"red bold words"'))).toEqual(['red bold words']);
    expect(await found(root, '31m')).toEqual([]);
  });

  it('finds any part of a very long word', async () => {
    const word = Array.from({ length: 300 }, (_, n) => String.fromCharCode(97 + ((n * n * 7 + n * 3) % 26))).join('');
    const { root } = await closedSession([word]);
    for (const [start, end] of [
      [0, 40],
      [31, 63],
      [100, 170],
      [280, 300],
      [0, 300],
    ]) {
      expect(await found(root, word.slice(start, end)), `${start} to ${end}`).toHaveLength(1);
    }
  });

  it('gives the newest first, and no more than wanted', async () => {
    let minute = 0;
    const now = () => new Date(Date.UTC(2026, 0, 1, 0, minute++));
    const { root, store } = await newSession(['apple 1', 'apple 2', 'apple 3'], { now });
    const id = mint.session();
    const other = await store.create(id, [created(id, mint.thread())]);
    await other.append([said('apple 4')]);
    expect(previews(await found(root, 'apple', 3))).toEqual(['apple 4', 'apple 3', 'apple 2']);
  });

  it('shows one line with what was found in it, cut where it is long', async () => {
    const { root } = await closedSession([`${'x'.repeat(500)}\n\t the needle \u0007\n${'y'.repeat(500)}`]);
    const [hit] = await found(root, 'needle');
    expect(hit?.preview).toMatch(/^…x+ the needle y+…$/);
    expect(hit?.preview.length).toBeLessThan(260);
  });
});

describe('The index', () => {
  it('learns what another process appended, and of sessions that come and go', async () => {
    const { root, id, folder } = await closedSession(['first']);
    const index = new SearchIndex(root);
    expect(await index.refresh()).toBe(true);
    expect(await index.refresh()).toBe(false);

    const child = new Child('some', root, id, 2);
    await child.says('ready');
    child.go();
    await child.ended();
    const typed = `"${child.pid} 1"`;
    expect(await index.search(typed, { limit: 5 })).toEqual([]);
    expect(await index.refresh()).toBe(true);
    expect(previews(await index.search(typed, { limit: 5 }))).toEqual([`${child.pid} 1`]);
    expect(previews(await index.search('first', { limit: 5 }))).toEqual(['first']);

    const born = mint.session();
    const writer = await opened({ root }).create(born, [created(born, mint.thread())]);
    await writer.append([said('second first')]);
    await index.refresh();
    expect(previews(await index.search('first', { limit: 5 }))).toEqual(['second first', 'first']);
    await writer.release();

    rmSync(folder, { recursive: true });
    expect(await index.refresh()).toBe(true);
    expect(previews(await index.search('first', { limit: 5 }))).toEqual(['second first']);
  });

  it('is kept in a cache: a new window reads no line again, and finds the same', async () => {
    const { root, id, log } = await closedSession(['an old jackfruit']);
    await found(root, 'nothing');
    expect(existsSync(join(root, 'cache'))).toBe(true);
    // The log's text is changed but not what the cache is keyed by: what is found comes from the cache.
    const bytes = readFileSync(log, 'utf8');
    writeFileSync(log, bytes.replace('A session', 'B session'));
    const [hit] = await found(root, 'jackfruit');
    expect([hit?.session, hit?.title, hit?.preview]).toEqual([id, 'A session', 'an old jackfruit']);
  });

  it('goes from the disk with the session it is of, however that goes', async () => {
    const { root, id, store, folder } = await closedSession(['an old jackfruit']);
    const kept = () => readdirSync(join(root, 'cache', 'search-1'));
    await found(root, 'nothing');
    expect(kept()).toEqual([id]);
    await store.delete(id);
    expect(kept()).toEqual([]);

    const other = await closedSession(['a second jackfruit']);
    await found(other.root, 'nothing');
    rmSync(other.folder, { recursive: true });
    await found(other.root, 'nothing');
    expect(readdirSync(join(other.root, 'cache', 'search-1'))).toEqual([]);
    expect(existsSync(folder)).toBe(false);
  });

  it('goes on from its cache with what came since', async () => {
    const { root, id, store } = await closedSession(['an old jackfruit']);
    await found(root, 'nothing');
    const writer = await store.acquire(id, 'a test');
    await writer.append([said('a new jackfruit')]);
    expect(previews(await found(root, 'jackfruit'))).toEqual(['a new jackfruit', 'an old jackfruit']);
    await writer.release();
  });

  it('is the same without its cache: deleted, damaged in any place, or of a log that was replaced', async () => {
    const { root, log } = await closedSession(['an old jackfruit', 'a second one']);
    const before = await found(root, 'jackfruit');
    expect(before).toHaveLength(1);
    rmSync(join(root, 'cache'), { recursive: true });
    expect(await found(root, 'jackfruit')).toEqual(before);

    const folder = join(root, 'cache', readdirSync(join(root, 'cache'))[0] ?? '');
    const file = join(folder, readdirSync(folder)[0] ?? '');
    const good = readFileSync(file);
    for (let at = 0; at < good.length; at += 7) {
      const bad = Buffer.from(good);
      bad[at] = (bad[at] ?? 0) ^ 0x5a;
      writeFileSync(file, bad);
      expect(await found(root, 'jackfruit'), `byte ${at}`).toEqual(before);
    }
    writeFileSync(file, good.subarray(0, good.length / 2));
    expect(await found(root, 'jackfruit')).toEqual(before);

    const other = await closedSession(['something else', 'a lychee', 'and so on']);
    writeFileSync(log, readFileSync(other.log));
    expect(await found(root, 'jackfruit')).toEqual([]);
    expect(previews(await found(root, 'lychee'))).toEqual(['a lychee']);
  });

  it('finds what is whole in a damaged log, and a torn end once it is whole', async () => {
    const { root, log } = await closedSession(['the first cherimoya', 'the second cherimoya', 'the third cherimoya']);
    const lines = readFileSync(log, 'utf8').split('\n');
    lines[2] = lines[2]?.slice(0, 100) ?? '';
    writeFileSync(log, lines.join('\n'));
    expect(previews(await found(root, 'cherimoya'))).toEqual(['the third cherimoya', 'the first cherimoya']);

    const whole = await closedSession(['a soursop']);
    const bytes = readFileSync(whole.log);
    const index = new SearchIndex(whole.root);
    truncateSync(whole.log, bytes.length - 30);
    await index.refresh();
    expect(await index.search('soursop', { limit: 5 })).toEqual([]);
    addBytes(whole.log, bytes.subarray(bytes.length - 30, -1));
    await index.refresh();
    expect(previews(await index.search('soursop', { limit: 5 }))).toEqual(['a soursop']);
  });

  it('works without a cache, in a folder that has no sessions, and beside folders that are none', async () => {
    const empty = join(await temporary(), '.drover');
    expect(await found(empty, 'anything')).toEqual([]);
    const { root } = await closedSession(['a feijoa']);
    // A file where the cache's folder would be: nothing can be kept.
    writeFileSync(join(root, 'cache'), '');
    await mkdir(join(root, 'sessions', 'not-a-session'));
    expect(await found(root, 'feijoa')).toHaveLength(1);
  });

  it('goes on into further blocks for a very long session', async () => {
    const words = (n: number) => Array.from({ length: 2000 }, (_, i) => `w${n}x${i}`).join(' ');
    const says = Array.from({ length: 120 }, (_, n) => words(n));
    const { root } = await closedSession(says);
    for (const word of ['w0x7', 'w60x1999', 'w119x0']) expect(await found(root, word), word).toHaveLength(1);
    // And again from the cache.
    expect(await found(root, 'w60x1999')).toHaveLength(1);
  });
});
