import { describe, expect, it } from 'vitest';
import { type EnvironmentDefinition, environmentProblems } from '../../../src/protocol/environment-rules.ts';
import { definitionOf, draftOf } from '../../../webview/environment/draft.ts';
import { hasBrowser, oneDesk, words } from './desk.ts';
import { lowContrast } from './readable.ts';
import { themeKinds } from './themes.ts';

const whole: EnvironmentDefinition = {
  name: 'Node',
  description: 'with tools',
  config: {
    type: 'image',
    image: 'node:24',
    packages: { apt: ['ripgrep', 'jq'], npm: ['typescript@5'] },
    networking: { type: 'limited', allowed_hosts: ['api.example.test'], allow_package_managers: true },
  },
  workspace: 'isolated',
  lifetime: 'call',
  limits: { memory_mib: 512, cpus: 1.5 },
};
const fresh: EnvironmentDefinition = { name: '', config: { type: 'devcontainer' } };

describe('the draft of an environment', () => {
  it('says again what it was made from', () => {
    const all: EnvironmentDefinition[] = [
      whole,
      fresh,
      { name: 'h', config: { type: 'host' } },
      { name: 'o', config: { type: 'os', networking: { type: 'none' } } },
      { name: 'd', config: { type: 'devcontainer', path: 'a/b.json' }, limits: { pids: 9 } },
    ];
    for (const one of all) expect(definitionOf(draftOf(one))).toEqual(one);
  });

  it('leaves out what its kind does not have, and keeps what is no number for the rules to see', () => {
    expect(definitionOf({ ...draftOf(whole), kind: 'host' })).toEqual({
      name: 'Node',
      description: 'with tools',
      config: { type: 'host' },
      workspace: 'isolated',
      lifetime: 'call',
    });
    const wrong = definitionOf({ ...draftOf(whole), memory: 'much', cpus: ' ' });
    expect(environmentProblems(wrong, []).map(({ field }) => field)).toEqual(['limits.memory_mib']);
  });
});

describe.skipIf(!hasBrowser)('the form of an environment', { timeout: 40_000 }, () => {
  const desk = oneDesk();
  const show = (definition: EnvironmentDefinition, existing = false) =>
    ({ type: 'show', definition, existing, folder: 'project' }) as const;

  it('sends what was typed, once it is asked to save', async () => {
    const form = await desk.form();
    await form.host(show(fresh));
    const { page } = form;
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Mine');
    await page.getByRole('radio', { name: /^Container image/ }).check();
    await page.getByRole('textbox', { name: 'Image', exact: true }).fill('node:24');
    await page.getByRole('radio', { name: /^On a copy/ }).check();
    await page.getByRole('radio', { name: /^A fresh one/ }).check();
    await page.getByRole('radio', { name: /^These hosts only/ }).check();
    await page
      .getByRole('textbox', { name: 'Hosts, one in a line', exact: true })
      .fill('a.example.test\n b.example.test \n');
    await page.getByRole('checkbox', { name: /package managers, too/ }).click();
    await page.getByRole('textbox', { name: 'Processors', exact: true }).fill('1.5');
    await page.getByRole('textbox', { name: 'npm', exact: true }).fill('typescript@5');
    await page.getByRole('button', { name: 'Create' }).click();
    expect((await form.sent()).at(-1)).toEqual({
      type: 'save',
      definition: {
        name: 'Mine',
        config: {
          type: 'image',
          image: 'node:24',
          packages: { npm: ['typescript@5'] },
          networking: {
            type: 'limited',
            allowed_hosts: ['a.example.test', 'b.example.test'],
            allow_package_managers: true,
          },
        },
        workspace: 'isolated',
        lifetime: 'call',
        limits: { cpus: 1.5 },
      },
    });
    expect(form.complaints).toEqual([]);
  });

  it('shows what is wrong beside its field, once it was touched or saving was tried, and goes to the first', async () => {
    const form = await desk.form();
    await form.host(show({ ...whole, name: '', limits: { cpus: 1 } }));
    const { page } = form;
    const problems = [
      { field: 'name', message: 'Give it a name.' },
      { field: 'config.packages.npm.0', message: 'This is no package.' },
      { field: 'config.networking.allowed_hosts.0', message: 'This is no host.' },
      { field: 'config.strange', message: 'This means nothing.' },
    ];
    await form.host({ type: 'problems', problems });
    await expect.poll(() => page.locator('.errors p').count()).toBe(0);
    await page.getByRole('textbox', { name: 'npm', exact: true }).fill('-x');
    await expect.poll(async () => (await form.sent()).at(-1)?.type).toBe('check');
    await expect.poll(() => page.locator('.errors p').count()).toBe(1);
    await page.getByRole('button', { name: 'Create' }).click();
    await form.host({ type: 'problems', problems });
    expect(await words(page.getByRole('alert'))).toBe(
      'Not saved: 4 things need to be corrected. config.strange: This means nothing.',
    );
    const said = async (field: string) => words(page.locator(`[id="field-${field}-errors"]`));
    expect(await said('name')).toBe('Give it a name.');
    expect(await said('config-packages-npm')).toBe('This is no package.');
    expect(await said('config-networking-allowed_hosts')).toBe('This is no host.');
    expect(await said('config-networking')).toBe('');
    expect(await page.evaluate(() => document.activeElement?.getAttribute('data-field'))).toBe('name');
  });

  it('keeps the kind of one that exists, and offers nothing that its kind does not have', async () => {
    const form = await desk.form();
    await form.host(show({ name: 'Free', config: { type: 'host' } }, true));
    const { page } = form;
    expect(await page.getByRole('radio', { name: /no sandbox/ }).isDisabled()).toBe(true);
    expect(await page.getByRole('radio', { name: /^OS sandbox/ }).count()).toBe(0);
    expect(await page.getByRole('note').textContent()).toContain('Nothing holds what runs here');
    expect(await page.getByText('It may connect to').count()).toBe(0);
    await page.getByRole('button', { name: 'Edit as JSON' }).click();
    expect((await form.sent()).at(-1)).toEqual({
      type: 'edit_json',
      definition: { name: 'Free', config: { type: 'host' } },
    });
  });

  for (const theme of themeKinds) {
    it(`is drawn in ${theme}`, async () => {
      const form = await desk.form({ theme });
      await form.host(show({ ...whole, name: '' }));
      await form.page.getByRole('button', { name: 'Create' }).click();
      await form.host({
        type: 'problems',
        problems: environmentProblems({ ...whole, name: '', limits: { memory_mib: -1 } }, []),
      });
      await form.picture(`environment-${theme}`);
      expect(await form.page.evaluate(lowContrast, 4.5)).toEqual([]);
      expect(form.complaints).toEqual([]);
    });
  }

  it('fits a narrow page', async () => {
    const form = await desk.form({ theme: 'light', width: 360 });
    await form.host(show(whole, true));
    await form.picture('environment-narrow');
    expect(await form.page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
  });
});
