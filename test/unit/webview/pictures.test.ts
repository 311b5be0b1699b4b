import { describe, expect, it } from 'vitest';
import { editPending, noKey, twoThreads, untouched } from '../../fixtures/panel/sessions.ts';
import { hasBrowser, oneDesk } from './desk.ts';
import { themeKinds } from './themes.ts';

describe.skipIf(!hasBrowser)('the panel in the four kinds of theme', { timeout: 40_000 }, () => {
  const desk = oneDesk();

  for (const theme of themeKinds) {
    it(`is drawn in ${theme}, wide`, async () => {
      const panel = await desk.panel({ theme });
      const fixture = twoThreads();
      await panel.open(fixture);
      await panel.picture(`conversation-${theme}`);
      await panel.page.getByRole('tab', { name: 'Timeline' }).click();
      await panel.settle();
      await panel.page.locator('.bar.tool').first().click();
      await panel.settle();
      await panel.picture(`timeline-${theme}`);
      expect(panel.complaints).toEqual([]);
    });
  }

  for (const theme of ['dark', 'light'] as const) {
    it(`is drawn in ${theme}, narrow`, async () => {
      const panel = await desk.panel({ theme, width: 520, height: 800 });
      await panel.open(editPending());
      await panel.picture(`narrow-${theme}`);
      await panel.page.getByRole('button', { name: 'Agents' }).click();
      await panel.settle();
      await panel.picture(`narrow-drawer-${theme}`);
      expect(panel.complaints).toEqual([]);
    });

    it(`is drawn in ${theme} with nothing said and without a key`, async () => {
      const empty = await desk.panel({ theme });
      await empty.open(untouched());
      await empty.picture(`empty-${theme}`);
      const keyless = await desk.panel({ theme });
      await keyless.open(noKey());
      await keyless.picture(`no-key-${theme}`);
      expect([...empty.complaints, ...keyless.complaints]).toEqual([]);
    });
  }
});
