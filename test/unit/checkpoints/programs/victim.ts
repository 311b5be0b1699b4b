import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mint, SessionId } from '../../../../src/protocol/ids.ts';
import { CheckpointStore } from '../../../../src/sandbox/checkpoints/checkpoints.ts';

/*
 * A process to be killed: it changes files and takes checkpoints of them as fast as it can, and says each that its log
 * would have by now.
 */
const [folder = '', privateFolder = '', session = ''] = process.argv.slice(2);
let last: { commit: string; seq: number } | null = null;
const store = new CheckpointStore({ root: join(folder, '.drover'), privateFolder });
const keeper = store.follow({
  session: SessionId.parse(session),
  environment: {
    id: mint.environment(),
    type: 'environment',
    name: 'Here',
    config: { type: 'os' },
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
    archived_at: null,
  },
  workspaceFolder: folder,
  record: async (drafts) => {
    for (const { event } of drafts) {
      if ('commit' in event) last = { commit: String(event.commit), seq: 0 };
      process.stdout.write(`${'commit' in event ? event.commit : JSON.stringify(event)}\n`);
    }
  },
  log: () => ({ head: 0, forkedAt: -1, checkpoint: last, problem: null, startedAfter: () => [] }),
});
for (let n = 0; ; n += 1) {
  const call = mint.event();
  await keeper.before(call);
  for (let at = 0; at < 20; at += 1) await appendFile(join(folder, `f${(n * 7 + at) % 200}.txt`), `${n}\n`);
  keeper.after(call);
}
