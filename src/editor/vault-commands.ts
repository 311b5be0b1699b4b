import * as vscode from 'vscode';
import type { VaultId } from '../protocol/ids.ts';
import { type Credential, credentialName, type Vault } from '../protocol/vault.ts';
import type { McpLogins } from '../vault/mcp-tokens.ts';
import type { Vaults } from '../vault/vault.ts';
import type { App } from './app.ts';
import { askForValues } from './boxes.ts';
import { askForCredential, askForVault } from './credential-form.ts';
import { askForNewLogin } from './mcp-credential.ts';
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
    const { auth } = credential;
    const anew = auth.type === 'mcp_oauth' ? await askForNewLogin(auth) : { values: await askForValues(auth) };
    if (!anew?.values) return;
    await vaults.rotate(credential.id, anew.values, 'auth' in anew ? anew.auth : undefined);
    app.secrets.changed();
  },

  async checkCredential(app, args) {
    const { logins, credential } = (await credentialIn(app, args, isMcp)) ?? {};
    if (!logins || !credential) return;
    const name = credentialName(credential);
    const { checkLogin } = await import('../vault/mcp-check.ts');
    const { status, said } = await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title: `Checking “${name}”…` },
      async () => checkLogin(await logins(), credential),
    );
    app.secrets.changed();
    const message = `“${name}”: ${status}. ${said}`;
    if (status === 'valid') void vscode.window.showInformationMessage(message);
    else void vscode.window.showWarningMessage(message);
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

async function vaultIn(app: App, [row]: readonly unknown[]) {
  if (isRow(row) && row.kind === 'vault') return inProject(app, row.project, row.vault);
  const project = await app.projects.choose();
  if (!project) return undefined;
  const all = (await vaultsOf(app, project)).vaults();
  if (all.length === 0) {
    throw new Refusal(`${project.name} has no vault yet.`, [{ title: 'Add Vault', command: 'drover.addVault' }]);
  }
  const [only] = all;
  if (only && all.length === 1) return inProject(app, project, only);
  const vaults = await vaultsOf(app, project);
  const picked = await vscode.window.showQuickPick(
    all.map((vault) => ({ label: vault.display_name, detail: contents(vaults, vault), vault })),
    { title: 'Drover: which vault?' },
  );
  return picked && inProject(app, project, picked.vault);
}

const inProject = async (app: App, project: Project, vault: Vault) => ({
  vaults: await vaultsOf(app, project),
  vault,
  logins: () => app.secrets.mcpLogins(project.store.root),
});

type Row = vscode.QuickPickItem & { vault?: Vault };

/** The vault for a new credential: the only one, the picked one, or a new one. Undefined if the person changed their mind. */
export async function vaultForNew(vaults: Vaults): Promise<Vault | undefined> {
  const all = vaults.vaults();
  const rows: Row[] = all.map((vault) => ({
    label: `$(lock) ${vault.display_name}`,
    detail: contents(vaults, vault),
    vault,
  }));
  if (all.length > 0) {
    const fresh: Row = { label: '$(add) A new vault…' };
    const title = 'Drover: into which vault?';
    const picked = await vscode.window.showQuickPick([...rows, fresh], { title, ignoreFocusOut: true });
    if (picked !== fresh) return picked?.vault;
  }
  const display_name = await askForVault();
  return display_name ? vaults.createVault({ display_name }) : undefined;
}

interface Found {
  vaults: Vaults;
  credential: Credential;
  logins: () => Promise<McpLogins>;
}

/** @param wanted which ones are offered */
async function credentialIn(
  app: App,
  args: readonly unknown[],
  wanted: (credential: Credential) => boolean = () => true,
): Promise<Found | undefined> {
  const [row] = args;
  if (isRow(row) && row.kind === 'credential') {
    const { project, credential } = row;
    const { root } = project.store;
    return { vaults: await vaultsOf(app, project), credential, logins: () => app.secrets.mcpLogins(root) };
  }
  const found = await vaultIn(app, args);
  if (!found) return undefined;
  const there = found.vaults.living([found.vault.id]).filter(wanted);
  if (there.length === 0) throw new Refusal(`“${found.vault.display_name}” has no such credential.`);
  const picked = await vscode.window.showQuickPick(
    there.map((credential) => ({ label: credentialName(credential), description: boundTo(credential), credential })),
    { title: `Drover: which credential of “${found.vault.display_name}”?` },
  );
  return picked && { ...found, credential: picked.credential };
}

const isMcp = ({ auth }: Credential): boolean => 'mcp_server_url' in auth;

const isRow = (value: unknown): value is VaultNode =>
  typeof value === 'object' &&
  value !== null &&
  'kind' in value &&
  (value.kind === 'vault' || value.kind === 'credential');
