import * as vscode from 'vscode';
import type { App } from './editor/app.ts';
import { commandIds } from './editor/command-ids.ts';
import type { Node } from './editor/tree-nodes.ts';
import type { VaultNode } from './editor/vault-tree.ts';

/*
 * The first thing VS Code loads, at window start in a folder that has sessions. So it is tiny: it says what there is,
 * and what does the work is loaded when it is first needed: `editor/app.ts` to show sessions, `engine.ts` to run them.
 */

let app: Promise<App> | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const sessionsChanged = new vscode.EventEmitter<Node | undefined>();
  const sessions = vscode.window.createTreeView<Node>('drover.sessions', {
    treeDataProvider: {
      onDidChangeTreeData: sessionsChanged.event,
      getChildren: async (node) => (await load()).tree.children(node),
      getTreeItem: async (node) => (await load()).tree.item(node),
      getParent: async (node) => (await load()).tree.parent(node),
    },
  });
  const vaultsChanged = new vscode.EventEmitter<VaultNode | undefined>();
  const vaults = vscode.window.createTreeView<VaultNode>('drover.vaults', {
    treeDataProvider: {
      onDidChangeTreeData: vaultsChanged.event,
      getChildren: async (node) => (await load()).vaultTree.children(node),
      getTreeItem: async (node) => (await load()).vaultTree.item(node),
    },
  });
  const views = { sessions, sessionsChanged, vaults, vaultsChanged };
  const load = (): Promise<App> => {
    app ??= import('./editor/app.ts').then((module) => module.openApp(context, views));
    return app;
  };
  context.subscriptions.push(
    ...Object.values(views),
    vscode.window.registerWebviewPanelSerializer('drover.session', {
      deserializeWebviewPanel: async (panel, state) => (await load()).panels.restore(panel, state),
    }),
    ...commandIds.map((id) =>
      vscode.commands.registerCommand(`drover.${id}`, async (...args: unknown[]) => (await load()).run(id, args)),
    ),
  );
  void loadWhereSessionsAre(load);
}

/** A session may be waiting, or may have been running when the last window died: then it goes on without being asked. */
async function loadWhereSessionsAre(load: () => Promise<App>): Promise<void> {
  for (const folder of vscode.workspace.workspaceFolders ?? []) {
    try {
      await vscode.workspace.fs.stat(vscode.Uri.joinPath(folder.uri, '.drover'));
    } catch {
      continue;
    }
    await load();
    return;
  }
}

export async function deactivate(): Promise<void> {
  await (await app)?.close();
}
