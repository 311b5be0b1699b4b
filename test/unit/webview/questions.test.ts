import { describe, expect, it } from 'vitest';
import { questions } from '../../fixtures/panel/questions.ts';
import { hasBrowser, oneDesk } from './desk.ts';

/** Longer than a new card takes no key or click for. */
const READ = 500;

describe.skipIf(!hasBrowser)('questions that are no calls', { timeout: 40_000 }, () => {
  const desk = oneDesk();

  for (const theme of ['dark', 'light'] as const) {
    it(`are drawn in ${theme}: a tripwire, a wanted host, what was answered, what was masked`, async () => {
      const panel = await desk.panel({ theme, height: 1100 });
      await panel.open(questions());
      const { page } = panel;
      await page.getByText('A tripwire was touched; nothing goes on until you decide').waitFor();
      await page.getByText('to collector.example:443, where it does not belong').first().waitFor();
      await page.getByText('Something in the sandbox wants out').waitFor();
      await page.getByText('Allowed by you for this session').waitFor();
      await page.getByText('A secret, the API key, was about to be written').waitFor();
      await page.getByText('Masked in this output: secret of an environment.').waitFor();
      await page.getByText('Waiting for you: 2 approvals').waitFor();
      await panel.picture(`questions-${theme}`);
      expect(panel.complaints).toEqual([]);
    });
  }

  it('are answered by a click: a host once, for the session or always', async () => {
    const panel = await desk.panel({ height: 1100 });
    const fixture = questions();
    await panel.open(fixture);
    await panel.page.waitForTimeout(READ);
    await panel.page.getByText('Always', { exact: true }).click();
    expect(await panel.sentOf('confirm')).toEqual([
      {
        type: 'confirm',
        n: 1,
        tool_use_id: fixture.host,
        result: 'allow',
        scope: 'always',
        seen: fixture.records.at(-1)?.seq,
      },
    ]);
  });

  it('are answered by the keyboard: the tripwire stops the session, without a reason to write', async () => {
    const panel = await desk.panel({ height: 1100 });
    const fixture = questions();
    await panel.open(fixture);
    await panel.page.waitForTimeout(READ);
    await panel.page.locator(`.approval[data-call="${fixture.canary}"]`).focus();
    await panel.page.waitForTimeout(READ);
    await panel.page.keyboard.press('Control+Backspace');
    expect(await panel.sentOf('confirm')).toMatchObject([{ tool_use_id: fixture.canary, result: 'deny' }]);
    await panel.page.getByText('Answer sent…').waitFor();
  });

  it('leave a way to let the model see what was masked', async () => {
    const panel = await desk.panel({ height: 1100 });
    const fixture = questions();
    await panel.open(fixture);
    await panel.page.getByText('Reveal to model…').click();
    expect(await panel.sentOf('reveal_secret')).toMatchObject([
      { tool_use_id: fixture.calls.env, finding: '0123456789abcdef' },
    ]);
  });
});
