import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { commandIds } from '../../src/editor/command-ids.ts';

const extension = () => {
  const found = vscode.extensions.getExtension('drover.drover');
  assert.ok(found, 'the extension is installed');
  return found;
};

describe('The extension', () => {
  it('has a handler for every command of its manifest, and no other command', async () => {
    await extension().activate();
    const contributed: { command: string }[] = extension().packageJSON.contributes.commands;
    const names = contributed.map(({ command }) => command).sort();
    assert.deepEqual(names, commandIds.map((id) => `drover.${id}`).sort());
    const registered = new Set(await vscode.commands.getCommands(true));
    for (const name of names) assert.ok(registered.has(name), `${name} is registered`);
  });

  it('names only commands that exist in its menus, keys and welcome texts', () => {
    const { contributes } = extension().packageJSON;
    const known = new Set(contributes.commands.map(({ command }: { command: string }) => command));
    const steps = contributes.walkthroughs.map(({ steps: all }: { steps: unknown }) => all);
    const text = JSON.stringify([contributes.menus, contributes.keybindings, contributes.viewsWelcome, steps]);
    const named = [...text.matchAll(/drover\.[a-zA-Z]+(?=["\\)])/g)].map(([name]) => name);
    const others = [
      'drover.start',
      'drover.sessions',
      'drover.session',
      'drover.vaults',
      'drover.pendingApprovals',
      'drover.activeRunning',
      'drover.activeIsolated',
      'drover.noSessions',
    ];
    for (const name of named) assert.ok(known.has(name) || others.includes(name), `${name} exists`);
    assert.ok(named.length > 20);
  });

  it('says in its manifest what it does in an untrusted and in a virtual folder', () => {
    const { capabilities } = extension().packageJSON;
    assert.equal(capabilities.untrustedWorkspaces.supported, 'limited');
    assert.equal(capabilities.virtualWorkspaces.supported, false);
    assert.ok(capabilities.untrustedWorkspaces.description.length > 40);
  });
});
