import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Docker from 'dockerode';
import { describe, expect, it } from 'vitest';
import { startRehearsal } from '../../src/rehearsal/server.ts';
import { Desk } from '../support/desk.ts';
import { eventsOf } from '../support/events.ts';
import { eventually } from '../support/eventually.ts';
import { hasEnded } from '../support/play.ts';
import { heardBy, written } from '../support/traces.ts';

const KEY = 'sk-ant-e2e-0123456789-abcdefghij-KLMNOPQRST';
const MODEL = 'claude-sonnet-5-5';
/** Every variable of every process inside that can be read, and the mark by which the output is known. */
const LOOK = "env; for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done 2>/dev/null; echo look-has-ended";

/** A repository that wants the key: its dev container asks for the host's variables by name. */
async function hostile(folder: string): Promise<void> {
  const path = join(folder, '.devcontainer', 'devcontainer.json');
  const before = await readFile(path, 'utf8');
  const wants =
    '"containerEnv": {"STOLEN": "$' +
    '{localEnv:ANTHROPIC_API_KEY}"}, "remoteEnv": {"TAKEN": "$' +
    '{localEnv:ANTHROPIC_API_KEY}"},';
  await writeFile(path, before.replace(/\{/, `{ ${wants}`));
}

/** The key as it is, and as base64 at each alignment has it. */
const forms = [
  KEY,
  ...['', 'x', 'xx'].map((before) =>
    Buffer.from(before + KEY)
      .toString('base64')
      .slice(4, -4),
  ),
];

describe('the model’s key', () => {
  it('goes to the model alone: not into the sandbox, the log, the model’s messages or the webview', async () => {
    const server = await startRehearsal({ apiKey: KEY, models: [MODEL] });
    try {
      await using desk = await Desk.open({
        change: hostile,
        env: { ANTHROPIC_API_KEY: KEY },
        settings: { 'drover.baseUrl': server.url, 'drover.model': MODEL },
      });
      // Every page in the window, webviews among them, writes down what it is told.
      await desk.workbench.page.addInitScript(() => {
        window.addEventListener('message', ({ data }) => {
          window.heard = `${window.heard ?? ''}${JSON.stringify(data)}\n`;
        });
      });
      await desk.workbench.reload();
      const task = `[rehearsal:call tool=bash] ${JSON.stringify({ command: LOOK })}`;
      await desk.start(task, { agent: 'Developer, trusts the sandbox' });
      await eventually('the session to end', 120_000, () => hasEnded(desk));
      await desk.panel.frame.getByText('ended ok').first().waitFor({ timeout: 20_000 });

      const records = await desk.records();
      const [result] = eventsOf(records, 'agent.tool_result');
      expect(JSON.stringify(result), 'the sandbox could be looked through').toContain('look-has-ended');
      expect(eventsOf(records, 'drover.secret_alarm'), 'nothing had to be taken out').toEqual([]);
      expect(server.requests.some(({ body }) => JSON.stringify(body).includes('look-has-ended'))).toBe(true);

      const [container] = await desk.containers();
      const inspected = container ? JSON.stringify(await new Docker().getContainer(container.Id).inspect()) : '';
      expect(inspected).toContain('drover.session');
      const frames = await Promise.all(desk.workbench.page.frames().map(heardBy));
      const webview = frames.join('\n');
      expect(webview, 'what the panel got was seen').toContain('look-has-ended');

      const places = {
        sandbox: inspected,
        log: await written(desk.folder),
        model: JSON.stringify(server.requests.map(({ body }) => body)),
        webview,
      };
      for (const [place, text] of Object.entries(places)) {
        for (const form of forms) expect(text.includes(form), `${form.slice(0, 12)}… in the ${place}`).toBe(false);
      }
    } finally {
      await server.close();
    }
  });
});
