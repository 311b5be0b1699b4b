import { OAuthError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import { messageOf } from '../protocol/errors.ts';
import { type McpOauth, maySendSecret } from '../protocol/vault.ts';
import { type SecretValues, VaultError } from './values.ts';

/** How long an authorization server may take for an answer, in ms. */
const PATIENCE_MS = 30_000;
/** Most characters of an answer: those with tokens have a few hundred. */
const MAX_ANSWER = 256 * 1024;

export type Refresh = NonNullable<McpOauth['refresh']>;
export type ClientAuth = Refresh['token_endpoint_auth']['type'];

/** The authorization server has said no: nothing but a new login helps. */
export class LoginRefused extends VaultError {}

export interface Tokens {
  access_token: string;
  /** Absent: the one before stays good. */
  refresh_token?: string | undefined;
  /** Seconds. Absent: not said. */
  expires_in?: number | undefined;
}

/**
 * New tokens for a refresh token, at its authorization server.
 * Throws `LoginRefused` if that says no, `VaultError` if it can't be asked now. Neither holds anything of the answer but its error code.
 */
export async function refreshTokens(refresh: Refresh, values: SecretValues): Promise<Tokens> {
  const { refreshAuthorization } = await import('@modelcontextprotocol/sdk/client/auth.js');
  const { token_endpoint, client_id, scope, resource, token_endpoint_auth } = refresh;
  const { host } = new URL(token_endpoint);
  let status = 0;
  try {
    return await refreshAuthorization(token_endpoint, {
      metadata: {
        issuer: token_endpoint,
        authorization_endpoint: token_endpoint,
        token_endpoint,
        response_types_supported: [],
      },
      clientInformation: { client_id },
      refreshToken: values.refresh_token ?? '',
      ...(resource === undefined ? {} : { resource }),
      addClientAuthentication: (headers, params) => {
        if (scope !== undefined) params.set('scope', scope);
        authenticate(token_endpoint_auth.type, { client_id, client_secret: values.client_secret }, headers, params);
      },
      fetchFn: async (url, init) => {
        const response = await secretFetch(url, init);
        status = response.status;
        return response;
      },
    });
  } catch (error) {
    if (status === 0) {
      throw new VaultError(
        `The authorization server at ${host} could not be asked for a new token (${reasonOf(error)}), so nothing was sent; it is asked again at the next use.`,
        { cause: error },
      );
    }
    const code = error instanceof OAuthError && error.errorCode !== 'server_error' ? error.errorCode : `HTTP ${status}`;
    if (status >= 400 && status < 500 && status !== 408 && status !== 429) {
      throw new LoginRefused(`The authorization server at ${host} renews this login no more (${code}).`);
    }
    throw new VaultError(
      `The authorization server at ${host} gave no new token (${code}), so nothing was sent; it is asked again at the next use.`,
    );
  }
}

/**
 * A request of a login: to https or this machine alone, to nowhere it is redirected to, and with an end.
 * Some servers say no with status 200; then it is made the 400 it should be.
 */
export async function secretFetch(url: string | URL, init: RequestInit = {}): Promise<Response> {
  if (!maySendSecret(String(url))) {
    throw new VaultError(
      `A login was led to ${new URL(url).origin}, which is not https, so nothing was sent there; ask who runs the server.`,
    );
  }
  const wait = AbortSignal.timeout(PATIENCE_MS);
  const signal = init.signal ? AbortSignal.any([init.signal, wait]) : wait;
  const response = await fetch(url, { ...init, redirect: init.method === 'POST' ? 'error' : 'manual', signal });
  const text = await limited(response);
  const { status, headers } = response;
  const empty = [101, 204, 205, 304].includes(status);
  return new Response(empty ? null : text, { status: status === 200 && saysNo(text) ? 400 : status, headers });
}

/** Puts who asks into a request to a token endpoint, as RFC 6749 (2.3.1) has it. */
export function authenticate(
  method: ClientAuth,
  { client_id, client_secret = '' }: { client_id: string; client_secret?: string | undefined },
  headers: Headers,
  params: URLSearchParams,
): void {
  if (method === 'client_secret_basic') {
    const login = `${formEncoded(client_id)}:${formEncoded(client_secret)}`;
    headers.set('Authorization', `Basic ${Buffer.from(login).toString('base64')}`);
    return;
  }
  params.set('client_id', client_id);
  if (method === 'client_secret_post') params.set('client_secret', client_secret);
}

const formEncoded = (text: string): string => new URLSearchParams({ x: text }).toString().slice(2);

async function limited(response: Response): Promise<string> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const piece of response.body ?? []) {
    text += decoder.decode(piece, { stream: true });
    if (text.length > MAX_ANSWER) throw new Error('the answer is too long');
  }
  return text + decoder.decode();
}

function saysNo(text: string): boolean {
  try {
    const answer: unknown = JSON.parse(text);
    return typeof answer === 'object' && answer !== null && 'error' in answer && typeof answer.error === 'string';
  } catch {
    return false;
  }
}

/** `fetch` hides why it failed behind two words. */
export function reasonOf(error: unknown): string {
  return error instanceof Error && error.cause instanceof Error ? messageOf(error.cause) : messageOf(error);
}
