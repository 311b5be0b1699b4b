import type { CredentialId, VaultId } from '../protocol/ids.ts';
import type { McpTokens } from '../protocol/mcp-tokens.ts';
import { type Credential, credentialName, mcpServerKey } from '../protocol/vault.ts';
import { LoginRefused, refreshTokens } from './token-endpoint.ts';
import { VaultError, valueFields } from './values.ts';
import type { Vaults } from './vault.ts';

/** A token is renewed this long before it expires, in ms: a request with it takes a while, and clocks differ. */
const BEFORE_MS = 60_000;

/** The logins for MCP servers in one folder's vaults. One per window, so that who needs a new token at once shares it. */
export class McpLogins {
  readonly #vaults: Vaults;
  readonly #now: () => number;
  readonly #renewing = new Map<CredentialId, Promise<string>>();

  /** @param now ms since 1970 */
  constructor(vaults: Vaults, now: () => number = Date.now) {
    this.#vaults = vaults;
    this.#now = now;
  }

  /** @param ids of a session's vaults, in the order in which they count: the first that has one for a server wins */
  tokens(ids: readonly VaultId[]): McpTokens {
    return {
      tokenFor: async (url) => {
        const credential = this.find(ids, url);
        if (!credential) return undefined;
        const { id } = credential;
        const token = await this.token(credential);
        return { credentialId: id, token, refreshed: () => this.#newer(id, token) };
      },
    };
  }

  /** The credential these vaults have for a server; paths count, spellings of the host do not. */
  find(ids: readonly VaultId[], url: string): Credential | undefined {
    const wanted = mcpServerKey(url);
    return this.#vaults
      .living(ids)
      .find(({ auth }) => 'mcp_server_url' in auth && mcpServerKey(auth.mcp_server_url) === wanted);
  }

  /** The token to send now, a new one if this one expires within a minute. Throws `VaultError`. */
  async token({ id, auth, refresh_failed_at: failed }: Credential): Promise<string> {
    const left = auth.type === 'mcp_oauth' && auth.expires_at ? Date.parse(auth.expires_at) - this.#now() : Infinity;
    if (left > BEFORE_MS || auth.type !== 'mcp_oauth') return this.#vaults.value(id);
    try {
      if (!auth.refresh || failed) throw new LoginRefused('Its token has expired.');
      return await this.renew(id);
    } catch (error) {
      if (left > 0) return this.#vaults.value(id);
      throw await this.#inWords(id, error);
    }
  }

  /** A new access token for an OAuth login, whether or not the old one is still good. Throws `VaultError`. */
  renew(id: CredentialId): Promise<string> {
    const under = this.#renewing.get(id);
    if (under) return under;
    const renewing = this.#renew(id).finally(() => this.#renewing.delete(id));
    this.#renewing.set(id, renewing);
    return renewing;
  }

  async #renew(id: CredentialId): Promise<string> {
    const { credential, values } = await this.#vaults.open(id);
    const { auth } = credential;
    if (auth.type !== 'mcp_oauth' || !auth.refresh) throw new LoginRefused('Nothing renews its token.');
    try {
      const { access_token, refresh_token, expires_in } = await refreshTokens(auth.refresh, values);
      const { expires_at: _, ...kept } = auth;
      const until = expires_in === undefined ? undefined : expiry(this.#now(), expires_in);
      const fresh = { ...values, access_token, ...(refresh_token ? { refresh_token } : {}) };
      await this.#vaults.rotate(id, fresh, until ? { ...kept, expires_at: until } : kept);
      return access_token;
    } catch (error) {
      if (!(error instanceof LoginRefused)) throw error;
      // A refresh token is often good for once: another window may have used it. What it got is good for both.
      const now = await this.#vaults.open(id);
      const theirs = now.values.access_token;
      if (theirs !== undefined && theirs !== values.access_token) return theirs;
      await this.#vaults.refreshFailed(id);
      throw error;
    }
  }

  async #newer(id: CredentialId, refused: string): Promise<string | undefined> {
    const { credential, values } = await this.#vaults.open(id);
    const now = values[valueFields(credential.auth)[0].name];
    if (now !== undefined && now !== refused) return now;
    const { auth } = credential;
    if (auth.type !== 'mcp_oauth' || !auth.refresh || credential.refresh_failed_at) return undefined;
    try {
      return await this.renew(id);
    } catch (error) {
      throw await this.#inWords(id, error);
    }
  }

  /** What a person can do about it. */
  async #inWords(id: CredentialId, error: unknown): Promise<unknown> {
    if (!(error instanceof LoginRefused)) return error;
    const { credential } = await this.#vaults.open(id);
    return new VaultError(
      `“${credentialName(credential)}” needs a new login, so nothing was sent with it; choose Rotate Credential in the Vaults view. ${error.message}`,
      { cause: error },
    );
  }
}

/** @returns RFC 3339; servers that count in other units than seconds make no date that can't be */
export function expiry(now: number, seconds: number): string {
  const most = 10 * 365 * 24 * 3600;
  return new Date(now + Math.min(Math.max(0, seconds), most) * 1000).toISOString();
}
