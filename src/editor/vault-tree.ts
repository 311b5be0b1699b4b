import * as vscode from 'vscode';
import type { VaultId } from '../protocol/ids.ts';
import { type Credential, credentialName, type Vault } from '../protocol/vault.ts';
import type { Project } from './project.ts';
import type { Projects } from './projects.ts';
import type { Secrets } from './secrets.ts';

/** A row of the Vaults tree. */
export type VaultNode =
  | { kind: 'vault'; project: Project; vault: Vault }
  | { kind: 'credential'; project: Project; credential: Credential; hasValue: boolean };

/** The Vaults tree: what there is and what it is for. There is no way to a value. */
export class VaultTree {
  readonly #secrets: Secrets;
  readonly #projects: Projects;
  /** What was shown last below each row, '' = at the top, in words that differ if anything looks different. */
  readonly #shown = new Map<string, { node: VaultNode | undefined; text: string }>();

  constructor(secrets: Secrets, projects: Projects) {
    this.#secrets = secrets;
    this.#projects = projects;
  }

  async children(node?: VaultNode): Promise<VaultNode[]> {
    const rows = await this.#rows(node);
    // With the top, all that is open is asked for anew; what is gone is not.
    if (!node) this.#shown.clear();
    this.#shown.set(keyOf(node), { node, text: this.#text(rows) });
    return rows;
  }

  /**
   * Whether anything would look different if it were drawn now. A tree that is drawn anew loses the menu that is open
   * on it, so this is asked first.
   */
  async changed(): Promise<boolean> {
    let differs = false;
    for (const [key, { node, text }] of [...this.#shown]) {
      const now = await this.#rows(node).then(
        (rows) => this.#text(rows),
        () => undefined,
      );
      if (now === text) continue;
      differs = true;
      // It is drawn with this, or what is newer, now.
      if (now !== undefined && this.#shown.has(key)) this.#shown.set(key, { node, text: now });
    }
    return differs;
  }

  async #rows(node: VaultNode | undefined): Promise<VaultNode[]> {
    if (node?.kind === 'credential') return [];
    if (node) return this.#credentials(node.project, node.vault.id);
    const rows = await Promise.all(
      this.#projects.all().map(async (project) => {
        const vaults = await this.#secrets.vaults(project.store.root);
        return vaults.vaults().map((vault): VaultNode => ({ kind: 'vault', project, vault }));
      }),
    );
    return rows.flat();
  }

  item(node: VaultNode): vscode.TreeItem {
    return node.kind === 'vault' ? this.#vault(node.project, node.vault) : credentialItem(node);
  }

  #text(rows: readonly VaultNode[]): string {
    return JSON.stringify(rows.map((row) => this.item(row)));
  }

  async #credentials(project: Project, vault: VaultId): Promise<VaultNode[]> {
    const vaults = await this.#secrets.vaults(project.store.root);
    const all = vaults.credentials(vault);
    const living = all.filter((one) => one.archived_at === null);
    const archived = all.filter((one) => one.archived_at !== null);
    return Promise.all(
      [...living, ...archived].map(async (credential): Promise<VaultNode> => {
        const hasValue = credential.archived_at === null && (await vaults.hasValue(credential).catch(() => false));
        return { kind: 'credential', project, credential, hasValue };
      }),
    );
  }

  #vault(project: Project, vault: Vault): vscode.TreeItem {
    const item = new vscode.TreeItem(vault.display_name, vscode.TreeItemCollapsibleState.Expanded);
    item.id = vault.id;
    item.iconPath = new vscode.ThemeIcon('lock');
    item.contextValue = 'vault';
    if (this.#projects.all().length > 1) item.description = project.name;
    item.tooltip = `${vault.display_name}: a session may use what is in it if you choose the vault when it starts.`;
    return item;
  }
}

const keyOf = (node: VaultNode | undefined): string =>
  node === undefined ? '' : node.kind === 'vault' ? node.vault.id : node.credential.id;

function credentialItem({ credential, hasValue }: Extract<VaultNode, { kind: 'credential' }>): vscode.TreeItem {
  const item = new vscode.TreeItem(credentialName(credential));
  const archived = credential.archived_at !== null;
  const warning = new vscode.ThemeIcon('warning', new vscode.ThemeColor('list.warningForeground'));
  item.id = credential.id;
  const over = credential.refresh_failed_at !== undefined;
  item.description = archived ? 'archived' : !hasValue ? 'has no value' : over ? 'log in again' : boundTo(credential);
  item.iconPath = archived
    ? new vscode.ThemeIcon('archive')
    : hasValue && !over
      ? icons[credential.auth.type]
      : warning;
  const kind = credential.source?.type ?? 'stored';
  const mcp = 'mcp_server_url' in credential.auth ? ':mcp' : '';
  item.contextValue = archived ? 'credential:archived' : `credential:${kind}${mcp}`;
  item.tooltip = tooltip(credential, hasValue);
  item.accessibilityInformation = { label: `${credentialName(credential)}, ${item.description}` };
  return item;
}

const icons: Record<Credential['auth']['type'], vscode.ThemeIcon> = {
  environment_variable: new vscode.ThemeIcon('symbol-variable'),
  git_https: new vscode.ThemeIcon('git-branch'),
  static_bearer: new vscode.ThemeIcon('plug'),
  mcp_oauth: new vscode.ThemeIcon('plug'),
};

/** Where the value may go, in a few words. */
export function boundTo({ auth }: Pick<Credential, 'auth'>): string {
  switch (auth.type) {
    case 'environment_variable':
      return auth.networking.type === 'unrestricted' ? 'any host' : auth.networking.allowed_hosts.join(', ');
    case 'git_https':
      return auth.host;
    default:
      return new URL(auth.mcp_server_url).host;
  }
}

const kinds: Record<Credential['auth']['type'], string> = {
  environment_variable: 'Environment variable',
  git_https: 'Git over https',
  static_bearer: 'Token of an MCP server',
  mcp_oauth: 'OAuth of an MCP server',
};

function tooltip(credential: Credential, hasValue: boolean): vscode.MarkdownString {
  const { auth, source } = credential;
  const rows: [string, string][] = [
    ['Kind', kinds[auth.type]],
    ['May go to', boundTo(credential)],
  ];
  if (auth.type === 'environment_variable') rows.push(['Put into', injectedInto(auth.injection_location)]);
  const place = source?.type === 'authentication_provider' ? `the ${source.provider_id} sign-in` : 'the secret storage';
  if (credential.archived_at === null) rows.push(['Value', hasValue ? `in ${place}` : `none in ${place}`]);
  if (auth.type === 'mcp_oauth') rows.push(['Renewed', renewal(credential)]);
  rows.push(['Changed', new Date(credential.updated_at).toLocaleString()]);
  const text = new vscode.MarkdownString();
  text.appendMarkdown('**').appendText(credentialName(credential)).appendMarkdown('**\n\n');
  for (const [name, value] of rows) text.appendText(`${name}: ${value}`).appendMarkdown('  \n');
  return text;
}

function renewal({ auth, refresh_failed_at: failed }: Credential): string {
  if (failed) return `no more since ${new Date(failed).toLocaleString()}; log in again with Rotate Credential`;
  if (auth.type !== 'mcp_oauth') return 'never';
  const until = auth.expires_at ? `, good until ${new Date(auth.expires_at).toLocaleString()}` : '';
  return (auth.refresh ? `by itself, at ${new URL(auth.refresh.token_endpoint).host}` : 'by a new login alone') + until;
}

function injectedInto(location: { header?: boolean | undefined; body?: boolean | undefined } | undefined): string {
  const header = location?.header ?? true;
  if (location?.body) return header ? 'headers and bodies' : 'bodies';
  return 'headers';
}
