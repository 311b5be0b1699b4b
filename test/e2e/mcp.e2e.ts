import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startRehearsal } from '../../src/rehearsal/server.ts';
import { AuthorizationServer } from '../support/authorization-server.ts';
import { Desk } from '../support/desk.ts';
import { eventsOf } from '../support/events.ts';
import { eventually } from '../support/eventually.ts';
import { allowButton, hasEnded } from '../support/play.ts';
import { ProtectedMcp } from '../support/protected-mcp.ts';
import { heardBy, written } from '../support/traces.ts';

const KEY = 'sk-ant-e2e-mcp-0123456789-abcdefghij';
const MODEL = 'claude-sonnet-5-5';
const TOKEN = 'weather_e2eBearerToken0123456789';
const AGENT = 'Developer, trusts the sandbox';

async function answer({ workbench }: Desk, prompt: string, text: string): Promise<void> {
  await workbench.page.locator('.quick-input-widget', { hasText: prompt }).waitFor({ timeout: 20_000 });
  await workbench.type(text);
}

/** Up to the question how one logs in. */
async function addServer(desk: Desk, name: string, url: string): Promise<void> {
  await desk.workbench.command('Drover: Add MCP Server');
  await desk.workbench.pick(AGENT);
  await desk.workbench.pick('An address');
  await answer(desk, 'Its address', url);
  await answer(desk, 'What it is called', name);
}

/** A session whose agent asks a server, is allowed to, and gets its answer. */
async function askServer(desk: Desk, server: string, town: string): Promise<void> {
  const { workbench } = desk;
  const before = await desk.sessions();
  await workbench.command('Drover: Start Session');
  await workbench.page.locator('.quick-input-list .monaco-list-row', { hasText: AGENT }).getByText(server).waitFor();
  await workbench.pick(AGENT);
  await workbench.pick('OS sandbox');
  await workbench.pick('Work');
  await workbench.page.keyboard.press('Enter');
  await answer(desk, 'in a sandbox of', `[rehearsal:call tool=mcp__${server}__forecast] ${JSON.stringify({ town })}`);
  await eventually('the new session', 30_000, async () => (await desk.sessions()).length > before.length);
  const card = desk.panel.card(town);
  await card.waitFor({ timeout: 60_000 });
  await eventually('the answer', 30_000, async () => {
    if (!(await card.isVisible())) return true;
    await allowButton(card).click({ timeout: 2_000 });
    return false;
  });
  await eventually('the session to end', 60_000, () => hasEnded(desk));
  const result = await desk.record('the result', 10_000, ({ event }) => event.type === 'agent.mcp_tool_result');
  expect(JSON.stringify(result.event)).toContain(`Sunshine over ${town}, 23 degrees.`);
  await desk.panel.frame.getByText(`Sunshine over ${town}`).first().waitFor({ timeout: 20_000 });
}

/** A browser reaches this machine's ports through `/proxy/` of code-server's own front, of which only VS Code is there. */
async function carryPorts({ workbench }: Desk): Promise<void> {
  await workbench.page.context().route(/\/proxy\/\d+\//, async (route) => {
    for (let at: string | null = route.request().url(); at; ) {
      const answer: Response = await fetch(at.replace(/:\d+\/proxy\/(\d+)\//, ':$1/'), { redirect: 'manual' });
      at = answer.headers.get('location');
      const { status } = answer;
      if (!at) await route.fulfill({ status, contentType: 'text/html', body: await answer.text() });
    }
  });
}

describe('an MCP server', () => {
  it('is added by hand, logged in at with a token or in the browser, and used; no token is anywhere it can be read', async () => {
    await using authorization = await AuthorizationServer.open();
    await using plain = await ProtectedMcp.open({ accepts: (token) => token === TOKEN });
    await using oauth = await ProtectedMcp.open({
      accepts: (token) => authorization.accepts(token),
      issuer: authorization.origin,
    });
    // Good for less than a minute: each use after the login needs a new one.
    authorization.lifetime = 30;
    const model = await startRehearsal({ apiKey: KEY, models: [MODEL] });
    try {
      await using desk = await Desk.open({
        env: { ANTHROPIC_API_KEY: KEY },
        settings: { 'drover.baseUrl': model.url, 'drover.model': MODEL },
      });
      const { workbench } = desk;
      await workbench.page.addInitScript(() => {
        window.addEventListener('message', ({ data }) => {
          window.heard = `${window.heard ?? ''}${JSON.stringify(data)}\n`;
        });
      });
      await workbench.reload();
      await carryPorts(desk);

      await addServer(desk, 'weather', plain.url);
      await workbench.pick('Paste a token');
      await workbench.page
        .locator('.quick-input-widget', { hasText: 'never shown again' })
        .waitFor({ timeout: 20_000 });
      expect(await workbench.quickInput.getAttribute('type')).toBe('password');
      await workbench.type(TOKEN);
      await answer(desk, 'Secrets that belong together', 'Work');
      await workbench.notification('has the MCP server “weather”').first().waitFor({ timeout: 20_000 });
      await askServer(desk, 'weather', 'Bergen');
      expect(new Set(plain.bearers)).toEqual(new Set([TOKEN]));

      await workbench.command('Drover: Check Credential');
      await workbench.pick(plain.url);
      await workbench
        .notification(/: valid\. 127\.0\.0\.1/)
        .first()
        .waitFor({ timeout: 20_000 });

      await addServer(desk, 'forecasts', oauth.url);
      const shown = workbench.page.context().waitForEvent('page', { timeout: 60_000 });
      await workbench.pick('Log in in the browser');
      const login = await shown;
      await login.getByText('You are logged in.').waitFor({ timeout: 30_000 });
      await login.close();
      await workbench.pick('Work');
      await workbench.notification('has the MCP server “forecasts”').first().waitFor({ timeout: 20_000 });
      await askServer(desk, 'forecasts', 'Oslo');
      const renewed = authorization.asked.filter((asked) => asked.get('grant_type') === 'refresh_token');
      expect(renewed.length).toBeGreaterThan(0);

      const catalog = JSON.parse(await readFile(join(desk.folder, '.drover', 'catalog.json'), 'utf8'));
      const agent = catalog.agents.find((one: { name: string }) => one.name === AGENT);
      expect(agent).toMatchObject({ version: 3, mcp_servers: [{ name: 'weather' }, { name: 'forecasts' }] });
      expect(eventsOf(await desk.records(), 'drover.secret_alarm'), 'nothing had to be taken out').toEqual([]);

      const frames = await Promise.all(workbench.page.frames().map(heardBy));
      const places = {
        folder: await written(desk.folder),
        model: JSON.stringify(model.requests.map(({ body }) => body)),
        webview: frames.join('\n'),
      };
      for (const [place, text] of Object.entries(places)) {
        expect(text, `the answer came to the ${place}`).toContain('Sunshine over Oslo');
        for (const secret of [TOKEN, ...authorization.secrets])
          expect(text.includes(secret), `${secret.slice(0, 12)}… in the ${place}`).toBe(false);
      }

      await workbench.command('Drover: Remove MCP Server');
      await workbench.pick(AGENT);
      await workbench.pick(plain.url);
      await workbench.notification('has the MCP server “weather” no more').first().waitFor({ timeout: 20_000 });
    } finally {
      await model.close();
    }
  }, 240_000);
});
