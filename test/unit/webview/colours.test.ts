import { describe, expect, it } from 'vitest';
import { noKey, twoThreads } from '../../fixtures/panel/sessions.ts';
import { hasBrowser, oneDesk, type PanelDesk } from './desk.ts';
import { lowContrast } from './readable.ts';
import { themeKinds } from './themes.ts';

/** Everywhere a state is told by a colour. */
const GROUNDS = [
  '.middle',
  '.side',
  '.branch:not(.shown)',
  '.branch.shown',
  '.approval',
  'drover-inspector',
  '.input-code',
];
const TONES = ['ok', 'bad', 'warn', 'busy', 'plus', 'minus'];

/** Says every state on every ground; returns the grounds there are. */
const sayAll = (panel: PanelDesk) =>
  panel.page.evaluate(
    ({ grounds, tones }) =>
      grounds.filter((ground) => {
        const all = [...document.querySelectorAll(ground)];
        const said = tones.map((tone) =>
          Object.assign(document.createElement('p'), { className: tone, textContent: tone }),
        );
        for (const element of all) element.append(...said.map((one) => one.cloneNode(true)));
        return all.length > 0;
      }),
    { grounds: GROUNDS, tones: TONES },
  );

describe.skipIf(!hasBrowser)('the colours of the panel', { timeout: 60_000 }, () => {
  const desk = oneDesk();

  for (const theme of themeKinds) {
    it(`tell every state on every ground in ${theme}: words by 4.5, signs by 3`, async () => {
      const panel = await desk.panel({ theme, height: 1600 });
      const seen = () => panel.page.evaluate(lowContrast, 4.5);
      await panel.open(twoThreads());
      expect(await seen()).toEqual([]);
      await panel.page.locator('.card.call .icon-button').first().click();
      await panel.settle();
      expect(await sayAll(panel)).toEqual(GROUNDS);
      expect(await seen()).toEqual([]);
      await panel.page.getByRole('tab', { name: 'Timeline' }).click();
      await panel.settle();
      expect(await panel.page.locator('.bar').count()).toBeGreaterThan(3);
      expect(await seen()).toEqual([]);
      const keyless = await desk.panel({ theme });
      await keyless.open(noKey());
      expect(await keyless.page.evaluate(lowContrast, 4.5)).toEqual([]);
    });
  }
});
