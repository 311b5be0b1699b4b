import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { EnvironmentFiles } from '../../src/editor/environments/json-files.ts';
import { eventually } from '../support/eventually.ts';
import { Stage } from './stage.ts';

async function replace(document: vscode.TextDocument, value: unknown): Promise<void> {
  const edit = new vscode.WorkspaceEdit();
  const whole = new vscode.Range(0, 0, document.lineCount, 0);
  edit.replace(document.uri, whole, typeof value === 'string' ? value : `${JSON.stringify(value, null, 2)}\n`);
  assert.ok(await vscode.workspace.applyEdit(edit));
}

const said = (document: vscode.TextDocument) =>
  vscode.languages
    .getDiagnostics(document.uri)
    .filter(({ source }) => source === 'Drover')
    .map(({ message, range }) => `${document.getText(range)} | ${message}`);

describe('An environment as JSON', () => {
  it('says at each place what is wrong there, is not saved as long as something is, and then is', async () => {
    await using stage = await Stage.open();
    const saved: string[] = [];
    const files = new EnvironmentFiles((_project, name) => saved.push(name));
    try {
      const wrong = { name: 'OS sandbox', config: { type: 'os', packages: { npm: ['x'] } }, limits: { pids: 'many' } };
      const document = await files.open(stage.project, wrong, undefined);
      await eventually('what is wrong', 10_000, () => said(document).length > 0);
      assert.deepEqual(said(document).sort(), [
        '"many" | This must be a number.',
        '{\n      "npm": [\n        "x"\n      ]\n    } | Only an image gets packages; a devcontainer.json installs what it needs itself (features, Dockerfile, postCreateCommand).',
      ]);
      await replace(document, { ...wrong, limits: undefined, config: { type: 'os' } });
      await eventually('the name alone', 10_000, () => said(document)[0]?.startsWith('"OS sandbox" | Another'));
      assert.equal(await document.save(), false);
      assert.equal((await stage.project.catalog()).environments().length, 2);

      await replace(document, '{ "name": ');
      await eventually(
        'what is no JSON',
        10_000,
        () => said(document).length > 0 && !said(document)[0]?.includes('Another'),
      );

      await replace(document, { name: 'Mine', config: { type: 'os' }, workspace: 'isolated' });
      await eventually('nothing wrong', 10_000, () => said(document).length === 0);
      assert.equal(await document.save(), true);
      const made = (await stage.project.catalog()).environments().find(({ name }) => name === 'Mine');
      assert.equal(made?.workspace, 'isolated');
      // The same document goes on as the environment that it made.
      await replace(document, { name: 'Mine, renamed', config: { type: 'os' } });
      assert.equal(await document.save(), true);
      const again = (await stage.project.catalog()).environment(made?.id ?? '');
      assert.deepEqual([again?.name, again?.workspace], ['Mine, renamed', undefined]);
      assert.deepEqual(saved, ['Mine', 'Mine, renamed']);
      await replace(document, { name: 'Mine, renamed', config: { type: 'host' } });
      await eventually('that its kind is fixed', 10_000, () =>
        said(document).some((one) => /"host" \| It is os/.test(one)),
      );
      await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
    } finally {
      files.dispose();
    }
  });
});
