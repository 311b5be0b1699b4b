import { cpSync, existsSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Head, NO_HEAD, serialize } from '../../../src/log/serialize.ts';
import { draft, type LogRecord } from '../../../src/protocol/record.ts';
import { pendingApprovals } from '../../../src/session/fold.ts';
import type { SessionState } from '../../../src/session/state.ts';
import { said, TestMcpServer } from '../../support/mcp-server.ts';
import { Rig } from '../harness/rig.ts';

/*
 * Records sessions for `test/fixtures/logs`: the real harness on the real log, with the rehearsal as its model.
 * A version of the format is recorded once, by the program that writes it, and never again.
 */

const asks = {
  tools: [
    { type: 'agent_toolset_20260401' as const, default_config: { permission_policy: { type: 'always_ask' as const } } },
  ],
};

const inCommand = (state: SessionState) => [...state.calls.values()].some((call) => call.execution !== null);

/** Each plays one session and leaves it at rest. */
export const recordings: Record<string, () => Promise<Rig>> = {
  async words() {
    const rig = await Rig.open();
    await rig.run('[rehearsal:say] Hello, line\nbreak, “quotes”, \u2028 and 🐑');
    await rig.say('[rehearsal:say] and a second turn');
    return rig;
  },
  async 'parallel-tools'() {
    const rig = await Rig.open();
    await rig.run('[rehearsal:parallel]');
    return rig;
  },
  async approvals() {
    const rig = await Rig.open({ agent: asks });
    const [first, second] = pendingApprovals(await rig.run('[rehearsal:parallel]'));
    if (!first || !second) throw new Error('Nothing asks.');
    await rig.answer(first.id, 'deny', { deny_message: 'not in this folder' });
    await rig.answer(second.id, 'allow');
    await rig.allowAll();
    return rig;
  },
  async 'waits-for-approval'() {
    const rig = await Rig.open({ agent: asks });
    await rig.run('[rehearsal:parallel]');
    return rig;
  },
  async subagents() {
    const rig = await Rig.open();
    await rig.run('[rehearsal:agents n=2]');
    return rig;
  },
  async 'large-output'() {
    const rig = await Rig.open();
    await rig.run('[rehearsal:big-output bytes=40000]');
    return rig;
  },
  async interrupted() {
    const rig = await Rig.open();
    await rig.create('[rehearsal:long-command seconds=30]');
    const done = rig.harness.wake(rig.session, 'a recording');
    await rig.until('the command', inCommand);
    await rig.append(draft('user.interrupt', {}, { queued: true }));
    await done;
    await rig.say('[rehearsal:say] go on');
    return rig;
  },
  async 'failing-service'() {
    const rig = await Rig.open();
    rig.rehearsal.fail({ kind: 'drop', afterBytes: 900 });
    await rig.run('[rehearsal:say] hello');
    rig.rehearsal.fail({ kind: 'status', status: 529, retryAfterMs: 20 });
    await rig.say('[rehearsal:say] hello again');
    return rig;
  },
  async 'malformed-call'() {
    const rig = await Rig.open();
    await rig.run('[rehearsal:look-around] [fault:malformed_tool]');
    return rig;
  },
  async crashed() {
    const rig = await Rig.open();
    await rig.create('[rehearsal:long-command seconds=1]');
    const dead = rig.harness.wake(rig.session, 'a recording');
    await rig.until('the command', inCommand);
    await rig.restart();
    await dead.catch(() => undefined);
    await rig.harness.wake(rig.session, 'after a crash');
    return rig;
  },
  async 'lost-sandbox'() {
    const rig = await Rig.open();
    await rig.create('[rehearsal:long-command seconds=30]');
    const done = rig.harness.wake(rig.session, 'a recording');
    await rig.until('the command', inCommand);
    rig.sandboxes.kill();
    await done;
    return rig;
  },
  async 'mcp-servers'() {
    const server = await TestMcpServer.start({
      look: { annotations: { readOnlyHint: true }, act: ({ page }) => said(`This is page ${page}.`) },
      change: { act: () => ({ ...said('There is no such page.'), isError: true }) },
      'odd name': {},
    });
    onTestFinished(() => server.down());
    const rig = await Rig.open({
      mcp: {},
      agent: {
        tools: [
          {
            type: 'mcp_toolset',
            mcp_server_name: 'wiki',
            configs: [{ name: 'look', permission_policy: { type: 'always_allow' } }],
          },
          { type: 'mcp_toolset', mcp_server_name: 'nobody' },
        ],
        mcp_servers: [
          { type: 'url', name: 'wiki', url: server.url },
          // A port that nothing listens at, as long as the machine is one of ours.
          { type: 'url', name: 'nobody', url: 'http://127.0.0.1:1/mcp' },
        ],
      },
    });
    await rig.run('[rehearsal:call tool=mcp__wiki__look] {"page": 7}');
    await rig.say('[rehearsal:call tool=mcp__wiki__change] {"page": 8}');
    await rig.allowAll();
    await rig.say('[rehearsal:call tool=mcp__nobody__any] {}');
    return rig;
  },
  async 'torn-and-mended'() {
    const rig = await Rig.open();
    await rig.run('[rehearsal:say] before the power cut');
    const log = join(folderOf(rig), 'log.jsonl');
    const { length } = Buffer.from(await logText(rig));
    await rig.harness.dispose();
    await rig.store.dispose();
    truncateSync(log, length - 40);
    await rig.restart();
    await rig.harness.wake(rig.session, 'after a power cut');
    await rig.say('[rehearsal:say] after it');
    return rig;
  },
};

const folderOf = (rig: Rig): string => join(rig.folder, '.drover', 'sessions', rig.session);

const logText = async (rig: Rig): Promise<string> => written(await rig.records());

/** Plays one, and puts its log and blobs into `folder`, without what would tell of the machine it was played on. */
export async function record(name: string, folder: string): Promise<void> {
  const rig = await recordings[name]?.();
  if (!rig) throw new Error(`There is no recording ${name}.`);
  const text = JSON.stringify(await rig.records())
    .replaceAll(rig.folder, '/home/someone/project')
    .replaceAll(`"host":"${hostname()}"`, '"host":"a-host"')
    .replaceAll(`"pid":${process.pid}`, '"pid":4711');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'log.jsonl'), written(JSON.parse(text)));
  const blobs = join(folderOf(rig), 'blobs');
  if (existsSync(blobs)) cpSync(blobs, join(folder, 'blobs'), { recursive: true });
}

/** The lines of records as the writer makes them; the chain is closed anew. */
function written(records: readonly LogRecord[]): string {
  let head: Head = NO_HEAD;
  return records
    .map(({ thread, event, local, fence, at }) => {
      const ready = { ...(thread ? { thread } : {}), event, ...(local ? { local } : {}) };
      const line = serialize([ready], head, fence, at);
      head = line.head;
      return line.bytes.toString();
    })
    .join('');
}
