import { messageOf } from '../protocol/errors.ts';
import type { Credential } from '../protocol/vault.ts';
import type { McpLogins } from './mcp-tokens.ts';
import { LoginRefused, reasonOf } from './token-endpoint.ts';

/** How long a server may take to answer, in ms. */
const PATIENCE_MS = 20_000;
/** What is said to a server that only wants to know who asks. */
const HELLO = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'Drover', version: '1' } },
};

/** As the public `mcp_oauth_validate` has it. */
export interface Checked {
  status: 'valid' | 'invalid' | 'unknown';
  /** A sentence: what the server or its authorization server said. */
  said: string;
}

/** Asks the server itself whether it takes the token, after renewing it if that is due. */
export async function checkLogin(logins: McpLogins, credential: Credential): Promise<Checked> {
  const { auth, id, vault_id, refresh_failed_at: failed } = credential;
  if (!('mcp_server_url' in auth)) return { status: 'unknown', said: 'Only tokens of MCP servers can be checked.' };
  const { host } = new URL(auth.mcp_server_url);
  try {
    // A person who checks a login that was refused may have mended it at the server.
    if (failed) await logins.renew(id);
    const token = await logins.tokens([vault_id]).tokenFor(auth.mcp_server_url);
    if (!token) return { status: 'unknown', said: 'It was archived or deleted meanwhile.' };
    let { status } = await greet(auth.mcp_server_url, token.token);
    const fresh = status === 401 ? await token.refreshed() : undefined;
    if (fresh !== undefined) ({ status } = await greet(auth.mcp_server_url, fresh));
    if (status >= 200 && status < 300) return { status: 'valid', said: `${host} takes it.` };
    if (status === 401 || status === 403) return { status: 'invalid', said: `${host} refuses it (status ${status}).` };
    return { status: 'unknown', said: `${host} answered with status ${status}, which says nothing about the token.` };
  } catch (error) {
    const refused = error instanceof LoginRefused || (error instanceof Error && error.cause instanceof LoginRefused);
    return { status: refused ? 'invalid' : 'unknown', said: messageOf(error) };
  }
}

/** What a server answers to the first words of the protocol. No redirect is followed, and no session is left open. */
export async function greet(url: string, token?: string): Promise<Response> {
  const headers = {
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
  const send = (init: RequestInit, more: Record<string, string> = {}) =>
    fetch(url, {
      ...init,
      headers: { ...headers, ...more },
      redirect: 'manual',
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
  let response: Response;
  try {
    response = await send({ method: 'POST', body: JSON.stringify(HELLO) });
  } catch (error) {
    throw new Error(`${new URL(url).host} could not be reached (${reasonOf(error)}).`, { cause: error });
  }
  await response.body?.cancel();
  const session = response.headers.get('mcp-session-id');
  if (session) {
    const over = send({ method: 'DELETE' }, { 'mcp-session-id': session });
    await over.then((answer) => answer.body?.cancel()).catch(() => undefined);
  }
  return response;
}
