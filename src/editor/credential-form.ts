import * as vscode from 'vscode';
import {
  type CredentialAuth,
  type CredentialDefinition,
  CredentialDefinition as Definition,
  VaultDefinition,
} from '../protocol/vault.ts';
import { ask as askBox, askForValues, authProblem, problemOf } from './boxes.ts';
import { askForMcpLogin, askForServerUrl, type NewCredential } from './mcp-credential.ts';

/*
 * The questions that make a credential: VS Code's own boxes one after the other, checked as they are typed. A value goes
 * from a password box to the vault; no page of ours sees it. Each returns undefined if the person changed their mind.
 */

type Kind = 'environment_variable' | 'git_https' | 'github';

/** Scopes of the GitHub sign-in: what git needs to fetch and push private repositories. */
const GITHUB_SCOPES = ['repo'];

export async function askForVault(before?: string): Promise<string | undefined> {
  const name = await vscode.window.showInputBox({
    title: before === undefined ? 'Drover: a new vault' : 'Drover: rename the vault',
    prompt: 'Secrets that belong together, such as those of one team. A session uses the vaults you choose for it.',
    placeHolder: 'Work',
    ...(before === undefined ? {} : { value: before }),
    ignoreFocusOut: true,
    validateInput: (display_name) => problemOf(VaultDefinition, { display_name }, ['display_name']),
  });
  return name?.trim();
}

export async function askForCredential(): Promise<NewCredential | undefined> {
  const kind = await askForKind();
  if (!kind) return undefined;
  if (kind === 'mcp') {
    const url = await askForServerUrl();
    const login = url && (await askForMcpLogin(url));
    return login && login !== 'none' ? login : undefined;
  }
  const definition = await forms[kind]();
  if (!definition) return undefined;
  const stored = definition.source?.type !== 'authentication_provider';
  const values = stored ? await askForValues(definition.auth) : {};
  return values && { definition, values };
}

async function askForKind(): Promise<Kind | 'mcp' | undefined> {
  const kinds: { label: string; detail: string; what: Kind | 'mcp' }[] = [
    {
      label: '$(symbol-variable) Environment variable',
      detail:
        'A key that programs read, such as NPM_TOKEN. They get a placeholder; the proxy puts the key in on the way out.',
      what: 'environment_variable',
    },
    {
      label: '$(github) Git at GitHub, with VS Code’s sign-in',
      detail: 'Clone and push with the account you are signed in with. Nothing is copied.',
      what: 'github',
    },
    {
      label: '$(git-branch) Git over https',
      detail: 'A user and a token for one host.',
      what: 'git_https',
    },
    {
      label: '$(plug) MCP server',
      detail: 'A login in the browser, or a token. It goes to that server alone.',
      what: 'mcp',
    },
  ];
  const picked = await vscode.window.showQuickPick(kinds, {
    title: 'Drover: what is the secret for?',
    ignoreFocusOut: true,
  });
  return picked?.what;
}

const forms: Record<Kind, () => Promise<CredentialDefinition | undefined>> = {
  async environment_variable() {
    const any = { type: 'environment_variable', networking: { type: 'unrestricted' } };
    const secret_name = await ask('Name of the variable', 'NPM_TOKEN', (typed) =>
      authProblem({ ...any, secret_name: typed }, ['secret_name']),
    );
    if (!secret_name) return undefined;
    const networking = await askForHosts(secret_name);
    if (!networking) return undefined;
    const injection_location = await askForPlace();
    return injection_location && checked({ type: 'environment_variable', secret_name, networking, injection_location });
  },

  async github() {
    const session = await vscode.authentication.getSession('github', GITHUB_SCOPES, { createIfNone: true });
    const auth = { type: 'git_https' as const, host: 'github.com', user: 'x-access-token' };
    return {
      display_name: `GitHub (${session.account.label})`,
      auth,
      source: { type: 'authentication_provider', provider_id: 'github', scopes: GITHUB_SCOPES },
    };
  },

  async git_https() {
    const host = await ask('Host, with :port if it is not 443', 'git.example.com', (typed) =>
      authProblem({ type: 'git_https', host: typed, user: 'x' }, ['host']),
    );
    if (!host) return undefined;
    const user = await ask(`User at ${host}`, 'x-access-token', (typed) =>
      authProblem({ type: 'git_https', host, user: typed }, ['user']),
    );
    return user ? checked({ type: 'git_https', host, user }) : undefined;
  },
};

type Networking = Extract<CredentialAuth, { type: 'environment_variable' }>['networking'];

async function askForHosts(secret_name: string): Promise<Networking | undefined> {
  const hosts = (typed: string) => typed.split(/[\s,]+/).filter(Boolean);
  const limited = (typed: string) => ({ type: 'limited' as const, allowed_hosts: hosts(typed) });
  const typed = await ask(
    `Hosts that may get ${secret_name}, with commas; * for every host the environment allows`,
    'api.example.com, *.example.org',
    (text) =>
      text.trim() === '*'
        ? undefined
        : authProblem({ type: 'environment_variable', secret_name, networking: limited(text) }, ['networking']),
  );
  if (!typed) return undefined;
  return typed === '*' ? { type: 'unrestricted' } : limited(typed);
}

type Place = Extract<CredentialAuth, { type: 'environment_variable' }>['injection_location'];

async function askForPlace(): Promise<Place> {
  const picked = await vscode.window.showQuickPick(
    [
      { label: 'In headers', detail: 'Tokens are nearly always sent so.', place: { header: true, body: false } },
      {
        label: 'In headers and bodies',
        detail: 'A login form, a signed payload.',
        place: { header: true, body: true },
      },
      { label: 'In bodies only', detail: '', place: { header: false, body: true } },
    ],
    { title: 'Drover: where in a request is it put in?' },
  );
  return picked?.place;
}

const ask = (prompt: string, placeHolder: string, problem: (typed: string) => string | undefined) =>
  askBox({ title: 'Drover: a new credential', prompt, placeHolder, problem });

const checked = (auth: CredentialAuth): CredentialDefinition => Definition.parse({ auth });
