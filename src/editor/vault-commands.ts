import * as vscode from 'vscode';
import type { CredentialId, VaultId } from '../protocol/ids.ts';
import { type Credential, credentialName, type Vault } from '../protocol/vault.ts';
import type { Vaults } from '../vault/vault.ts';
import type { App } from './app.ts';
import { askForCredential, askForValues, askForVault } from './credential-form.ts';
import type { Project } from './project.ts';
import { Refusal } from './refusal.ts';
import { boundTo, type VaultNode } from './vault-tree.ts';

/** What the commands of the Vaults view do. Each takes the row it was called on, or asks. */
type Handler = (app: App, args: readonly unknown[]) => Promise<void>;

export const vaultHandlers = {
  async addVault(app) {
    const project = await app.projects.choose();
    if (!project) return;
    const display_name = await askForVault();
    if (!display_name) return;
    await (await vaultsOf(app, project)).createVault({ display_name });
    app.secrets.changed();
    await vscode.commands.executeCommand('drover.vaults.focus');
  },

  async renameVault(app, args) {
    const { vaults, vault } = (await vaultIn(app, args)) ?? {};
    if (!vaults || !vault) return;
    const name = await askForVault(vault.display_name);
    if (!name) return;
    await vaults.renameVault(vault.id, name);
    app.secrets.changed();
  },

  async archiveVault(app, args) {
    const { vaults, vault } = (await vaultIn(app, args)) ?? {};
    if (!vaults || !vault) return;
    const detail = 'The values of all its credentials are removed for good. Sessions that use it go on without them.';
    if (!(await sure(`Archive the vault “${vault.display_name}”?`, detail, 'Archive'))) return;
    await vaults.archiveVault(vault.id);
    app.secrets.changed();
  },

  async deleteVault(app, args) {
    const { vaults, vault } = (await vaultIn(app, args)) ?? {};
    if (!vaults || !vault) return;
    const detail = 'Its credentials go with it, values and descriptions. Sessions that use it go on without them.';
    if (!(await sure(`Delete the vault “${vault.display_name}”?`, detail, 'Delete'))) return;
    await vaults.deleteVault(vault.id);
    app.secrets.changed();
  },

  async addCredential(app, args) {
    const { vaults, vault } = (await vaultIn(app, args)) ?? {};
    if (!vaults || !vault) return;
    const wanted = await askForCredential();
    if (!wanted) return;
    await vaults.addCredential(vault.id, wanted.definition, wanted.values);
    app.secrets.changed();
  },

  async rotateCredential(app, args) {
    const { vaults, credential } = (await credentialIn(app, args)) ?? {};
    if (!vaults || !credential) return;
    if (credential.source?.type === 'authentication_provider') {
      throw new Refusal('Its value comes from a sign-in of VS Code’s; sign out and in there to change it.');
    }
    const values = await askForValues(credential.auth);
    if (!values) return;
    await vaults.rotate(credential.id, values);
    app.secrets.changed();
  },

  async archiveCredential(app, args) {
    const { vaults, credential } = (await credentialIn(app, args)) ?? {};
    if (!vaults || !credential) return;
    const detail = 'Its value is removed for good; what it was for stays on record. Sessions go on without it.';
    if (!(await sure(`Archive “${credentialName(credential)}”?`, detail, 'Archive'))) return;
    await vaults.archiveCredential(credential.id);
    app.secrets.changed();
  },

  async deleteCredential(app, args) {
    const { vaults, credential } = (await credentialIn(app, args)) ?? {};
    if (!vaults || !credential) return;
    const detail = 'Its value is removed for good, and so is its description. Sessions go on without it.';
    if (!(await sure(`Delete “${credentialName(credential)}”?`, detail, 'Delete'))) return;
    await vaults.deleteCredential(credential.id);
    app.secrets.changed();
  },
} satisfies Record<string, Handler>;

/**
 * Which vaults a new session may use, in the order that counts where two have the same. Empty without asking where there
 * are none; undefined if the person changed their mind.
 */
export async function chooseVaults(vaults: Vaults): Promise<VaultId[] | undefined> {
  const there = vaults.vaults();
  if (there.length === 0) return [];
  const picked = await vscode.window.showQuickPick(
    there.map((vault) => ({ label: `$(lock) ${vault.display_name}`, detail: contents(vaults, vault), vault })),
    {
      title: 'Drover: which vaults may it use? None is fine.',
      placeHolder: 'The sandbox gets placeholders; values go only to the hosts they are bound to',
      canPickMany: true,
    },
  );
  return picked?.map(({ vault }) => vault.id);
}

function contents(vaults: Vaults, vault: Vault): string {
  const names = vaults.living([vault.id]).map((one) => `${credentialName(one)} → ${boundTo(one)}`);
  return names.length > 0 ? names.join(' · ') : 'nothing in it yet';
}

const vaultsOf = (app: App, project: Project): Promise<Vaults> => app.secrets.vaults(project.store.root);

async function sure(message: string, detail: string, go: string): Promise<boolean> {
  return (await vscode.window.showWarningMessage(message, { modal: true, detail }, go)) === go;
}

async function vaultIn(app: App, [row]: readonly unknown[]): Promise<{ vaults: Vaults; vault: Vault } | undefined> {
  if (isRow(row) && row.kind === 'vault') return { vaults: await vaultsOf(app, row.project), vault: row.vault };
  const project = await app.projects.choose();
  if (!project) return undefined;
  const vaults = await vaultsOf(app, project);
  const all = vaults.vaults();
  if (all.length === 0) {
    throw new Refusal(`${project.name} has no vault yet.`, [{ title: 'Add Vault', command: 'drover.addVault' }]);
  }
  const [only] = all;
  if (only && all.length === 1) return { vaults, vault: only };
  const picked = await vscode.window.showQuickPick(
    all.map((vault) => ({ label: vault.display_name, detail: contents(vaults, vault), vault })),
    { title: 'Drover: which vault?' },
  );
  return picked && { vaults, vault: picked.vault };
}

async function credentialIn(
  app: App,
  args: readonly unknown[],
): Promise<{ vaults: Vaults; credential: { id: CredentialId } & Credential } | undefined> {
  const [row] = args;
  if (isRow(row) && row.kind === 'credential') {
    return { vaults: await vaultsOf(app, row.project), credential: row.credential };
  }
  const found = await vaultIn(app, args);
  if (!found) return undefined;
  const picked = await vscode.window.showQuickPick(
    found.vaults.living([found.vault.id]).map((credential) => ({
      label: credentialName(credential),
      description: boundTo(credential),
      credential,
    })),
    { title: `Drover: which credential of “${found.vault.display_name}”?` },
  );
  return picked && { vaults: found.vaults, credential: picked.credential };
}

const isRow = (value: unknown): value is VaultNode =>
  typeof value === 'object' &&
  value !== null &&
  'kind' in value &&
  (value.kind === 'vault' || value.kind === 'credential');
