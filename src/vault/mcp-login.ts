import { randomBytes } from 'node:crypto';
import {
  auth as authorize,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  selectClientAuthMethod,
} from '@modelcontextprotocol/sdk/client/auth.js';
import { OAuthError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import type {
  OAuthClientInformationMixed,
  OAuthClientMetadata,
  OAuthTokens,
} from '@modelcontextprotocol/sdk/shared/auth.js';
import { messageOf } from '../protocol/errors.ts';
import { type McpOauth, maySendSecret } from '../protocol/vault.ts';
import { greet } from './mcp-check.ts';
import { expiry } from './mcp-tokens.ts';
import { authenticate, type ClientAuth, secretFetch } from './token-endpoint.ts';
import { type SecretValues, VaultError } from './values.ts';

/** What a person's browser does for a login. */
export interface LoginBrowser {
  /** Where the authorization server sends it back to. */
  redirectUrl: string;
  /** Shows the page and resolves with what came back for `state`; undefined if the person changed their mind. */
  visit(url: URL, state: string): Promise<URLSearchParams | undefined>;
}

export interface NewLogin {
  auth: McpOauth;
  values: SecretValues;
}

/**
 * Logs a person in at an MCP server, the way the protocol has it: what the server says of its authorization server, a
 * client that registers itself there, the person's yes in a browser, a code for tokens with PKCE. The steps are the SDK's.
 * Undefined if the person changed their mind. Throws `VaultError`.
 */
export async function logIn(serverUrl: string, browser: LoginBrowser): Promise<NewLogin | undefined> {
  const { host } = new URL(serverUrl);
  const login = new Login(browser.redirectUrl);
  const hello = await greet(serverUrl).catch((error: unknown) => {
    throw new VaultError(`You were not logged in: ${messageOf(error)}`, { cause: error });
  });
  const { scope, resourceMetadataUrl } = extractWWWAuthenticateParams(hello);
  const options = {
    serverUrl,
    fetchFn: secretFetch,
    ...(scope ? { scope } : {}),
    ...(resourceMetadataUrl ? { resourceMetadataUrl } : {}),
  };
  try {
    await authorize(login, options);
  } catch (error) {
    if (error instanceof VaultError) throw error;
    throw new VaultError(
      `You were not logged in: ${host} does not tell Drover where and as whom to ask (${messageOf(error).slice(0, 200)}); if it gives tokens in another way, paste one.`,
      { cause: error },
    );
  }
  if (!login.page) throw new VaultError(`You were not logged in: ${host} names no page to log in at.`);
  const came = await browser.visit(login.page, login.state());
  if (!came) return undefined;
  const authorizationCode = login.code(came);
  try {
    await authorize(login, { ...options, authorizationCode });
  } catch (error) {
    // Without the error itself: it may quote an answer that has tokens in it.
    const code = error instanceof OAuthError ? error.errorCode : 'no token came';
    throw new VaultError(`You were not logged in: the authorization server of ${host} gave no token (${code}).`);
  }
  return login.result(serverUrl);
}

/** One login while it lasts; nothing of it is kept. */
class Login implements OAuthClientProvider {
  readonly redirectUrl: string;
  page: URL | undefined;
  readonly #state = randomBytes(32).toString('base64url');
  #client: OAuthClientInformationMixed | undefined;
  #tokens: OAuthTokens | undefined;
  #verifier = '';
  #found: OAuthDiscoveryState | undefined;

  constructor(redirectUrl: string) {
    this.redirectUrl = redirectUrl;
  }

  get clientMetadata(): OAuthClientMetadata {
    return {
      client_name: 'Drover',
      redirect_uris: [this.redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      // A program on a person's machine can keep no secret from them: PKCE is what counts.
      token_endpoint_auth_method: 'none',
    };
  }

  state(): string {
    return this.#state;
  }

  clientInformation() {
    return this.#client;
  }

  saveClientInformation(client: OAuthClientInformationMixed): void {
    this.#client = client;
  }

  /** None from before: who logs in anew wants to be asked. */
  tokens(): undefined {
    return undefined;
  }

  saveTokens(tokens: OAuthTokens): void {
    this.#tokens = tokens;
  }

  redirectToAuthorization(url: URL): void {
    if (!maySendSecret(url.href)) {
      throw new VaultError(`You were not logged in: the page to log in at is at ${url.origin}, which is not https.`);
    }
    this.page = url;
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }

  saveDiscoveryState(found: OAuthDiscoveryState): void {
    this.#found = found;
  }

  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#found;
  }

  readonly addClientAuthentication: NonNullable<OAuthClientProvider['addClientAuthentication']> = (headers, params) => {
    authenticate(this.#method, this.#client ?? { client_id: '' }, headers, params);
  };

  get #method(): ClientAuth {
    const supported = this.#found?.authorizationServerMetadata?.token_endpoint_auth_methods_supported ?? [];
    return this.#client ? selectClientAuthMethod(this.#client, supported) : 'none';
  }

  /** The code that came back. Throws `VaultError` if the person or the server said no, or another server answered. */
  code(came: URLSearchParams): string {
    const issuer = came.get('iss');
    const expected = this.#found?.authorizationServerMetadata?.issuer;
    if (issuer !== null && expected !== undefined && issuer !== expected) {
      throw new VaultError('You were not logged in: the answer came from another authorization server than was asked.');
    }
    const code = came.get('code');
    if (code) return code;
    const why =
      came
        .get('error')
        ?.replace(/[^\w-]/g, '')
        .slice(0, 50) || 'no reason given';
    throw new VaultError(`You were not logged in: the authorization server said no (${why}).`);
  }

  result(mcp_server_url: string): NewLogin {
    const [client, tokens, found] = [this.#client, this.#tokens, this.#found];
    if (!client || !tokens || !found) throw new VaultError('You were not logged in: no token came.');
    const { access_token, refresh_token, expires_in } = tokens;
    const { client_id, client_secret } = client;
    const type = this.#method;
    const resource = found.resourceMetadata?.resource;
    const refresh = {
      token_endpoint:
        found.authorizationServerMetadata?.token_endpoint ?? new URL('/token', found.authorizationServerUrl).href,
      client_id,
      ...(resource ? { resource } : {}),
      token_endpoint_auth: { type },
    };
    return {
      auth: {
        type: 'mcp_oauth',
        mcp_server_url,
        ...(expires_in === undefined ? {} : { expires_at: expiry(Date.now(), expires_in) }),
        ...(refresh_token ? { refresh } : {}),
      },
      values: {
        access_token,
        ...(refresh_token ? { refresh_token } : {}),
        ...(refresh_token && type !== 'none' && client_secret ? { client_secret } : {}),
      },
    };
  }
}
