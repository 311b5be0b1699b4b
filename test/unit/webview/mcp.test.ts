import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readLog } from '../../../src/log/read.ts';
import { hasBrowser, oneDesk } from './desk.ts';

const LOG = join(import.meta.dirname, '../../fixtures/logs/v1/mcp-servers/log.jsonl');

describe.skipIf(!hasBrowser)('the panel of a session with MCP servers', { timeout: 60_000 }, () => {
  const desk = oneDesk();

  for (const theme of ['dark', 'light'] as const) {
    it(`says in ${theme} whose tool a call is of, and where it runs`, async () => {
      const { records } = await readLog(LOG);
      const asking = records.findIndex(({ event }) => event.type === 'user.tool_confirmation');
      const panel = await desk.panel({ theme });
      const now = Date.parse(records[asking]?.at ?? '');
      await panel.open({ records: records.slice(0, asking), now });
      const card = panel.page.locator('.approval');
      expect(await card.locator('h3').textContent()).toBe('Tester wants to use change of the MCP server wiki');
      expect(await card.textContent()).toMatch(/Runs at the MCP server wiki \(127\.0\.0\.1:\d+\)\./);
      expect(await panel.page.locator('.line').first().textContent()).toContain('MCP server wiki: 3 tools');
      await panel.picture(`mcp-asking-${theme}`);
      await panel.page.getByRole('tab', { name: 'Timeline' }).click();
      await panel.settle();
      await panel.page.locator('.bar.tool').first().click();
      await panel.settle();
      await panel.picture(`mcp-timeline-${theme}`);
      expect(panel.complaints).toEqual([]);
    });
  }
});
