import * as vscode from 'vscode';
import { type Credential, CredentialDefinition, type McpOauth } from '../protocol/vault.ts';
import type { NewLogin } from '../vault/mcp-login.ts';
import type { SecretValues } from '../vault/values.ts';
import { ask, askForValues, authProblem } from './boxes.ts';

/* The questions for a login at an MCP server. Each returns undefined if the person changed their mind. */

export interface NewCredential {
  definition: CredentialDefinition;
  values: SecretValues;
}

type Refresh = NonNullable<McpOauth['refresh']>;

const TITLE = 'Drover: a login for an MCP server';

export const askForServerUrl = (): Promise<string | undefined> =>
  ask({
    title: TITLE,
    prompt: 'Address of the MCP server, exactly as the agent names it',
    placeHolder: 'https://mcp.example.com/mcp',
    problem: (mcp_server_url) => authProblem({ type: 'static_bearer', mcp_server_url }, ['mcp_server_url']),
  });

/** @param none what “it wants none” is called; absent: that is no answer */
export async function askForMcpLogin(url: string, none?: string): Promise<NewCredential | 'none' | undefined> {
  const ways: { label: string; detail: string; way: 'browser' | 'bearer' | 'oauth' | 'none' }[] = [
    {
      label: '$(globe) Log in in the browser',
      detail: 'The server’s own login (OAuth). Drover renews it by itself.',
      way: 'browser',
    },
    {
      label: '$(key) Paste a token',
      detail: 'A token or key that the server gave you. It is sent as it is.',
      way: 'bearer',
    },
    {
      label: '$(references) Paste the tokens of an OAuth login',
      detail: 'An access token, and what renews it. For servers that Drover can’t log in at by itself.',
      way: 'oauth',
    },
  ];
  if (none !== undefined) ways.push({ label: `$(circle-slash) ${none}`, detail: '', way: 'none' });
  const picked = await vscode.window.showQuickPick(ways, {
    title: `Drover: how do you log in at ${new URL(url).host}?`,
    ignoreFocusOut: true,
  });
  if (!picked) return undefined;
  if (picked.way === 'none') return 'none';
  if (picked.way === 'browser') return inBrowser(url);
  const auth =
    picked.way === 'bearer' ? ({ type: 'static_bearer', mcp_server_url: url } as const) : await askForOauth(url);
  const values = auth && (await askForValues(auth));
  return values && { definition: CredentialDefinition.parse({ auth }), values };
}

/** A login again, for a credential that is there. */
export async function askForNewLogin(auth: McpOauth): Promise<NewLogin | undefined> {
  const url = auth.mcp_server_url;
  const picked = await vscode.window.showQuickPick(
    [
      { label: '$(globe) Log in in the browser', way: 'browser' as const },
      { label: '$(references) Paste tokens', detail: 'For the client it has now.', way: 'paste' as const },
    ],
    { title: `Drover: log in anew at ${new URL(url).host}`, ignoreFocusOut: true },
  );
  if (!picked) return undefined;
  if (picked.way === 'browser') return (await import('./browser-login.ts')).logInWithBrowser(url);
  const values = await askForValues(auth);
  const { expires_at: _, ...kept } = auth;
  return values && { auth: kept, values };
}

async function inBrowser(url: string): Promise<NewCredential | undefined> {
  const { logInWithBrowser } = await import('./browser-login.ts');
  const login = await logInWithBrowser(url);
  return login && { definition: { auth: login.auth }, values: login.values };
}

async function askForOauth(mcp_server_url: string): Promise<Credential['auth'] | undefined> {
  const auth = { type: 'mcp_oauth' as const, mcp_server_url };
  const start: Refresh = { token_endpoint: 'https://x.example', client_id: 'x', token_endpoint_auth: { type: 'none' } };
  const problem = (refresh: Refresh, field: keyof Refresh) => authProblem({ ...auth, refresh }, ['refresh', field]);
  const token_endpoint = await ask({
    title: TITLE,
    prompt: 'Token endpoint that renews it. Empty: nothing does, and you log in anew when it expires.',
    placeHolder: 'https://login.example.com/oauth/token',
    optional: true,
    problem: (typed) => problem({ ...start, token_endpoint: typed }, 'token_endpoint'),
  });
  if (token_endpoint === undefined) return undefined;
  if (token_endpoint === '') return auth;
  const client_id = await ask({
    title: TITLE,
    prompt: 'Id of the client that it was made for',
    problem: (typed) => problem({ ...start, client_id: typed }, 'client_id'),
  });
  if (!client_id) return undefined;
  const proofs: { label: string; detail: string; type: Refresh['token_endpoint_auth']['type'] }[] = [
    { label: 'By nothing', detail: 'A public client: none', type: 'none' },
    { label: 'By a secret in the header', detail: 'client_secret_basic', type: 'client_secret_basic' },
    { label: 'By a secret in the form', detail: 'client_secret_post', type: 'client_secret_post' },
  ];
  const proof = await vscode.window.showQuickPick(proofs, {
    title: 'Drover: how does the client prove who it is?',
    ignoreFocusOut: true,
  });
  return proof && { ...auth, refresh: { token_endpoint, client_id, token_endpoint_auth: { type: proof.type } } };
}
