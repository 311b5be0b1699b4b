import type { CredentialId } from './ids.ts';

/** What one request to an MCP server is sent with. */
export interface McpToken {
  credentialId: CredentialId;
  /** Of this request: not to be kept. */
  token: string;
  /**
   * A newer one, after the server refused this one; undefined if there is none, so that asking again is of no use.
   * Throws as `tokenFor`.
   */
  refreshed(): Promise<string | undefined>;
}

/** The tokens one session has for its MCP servers. */
export interface McpTokens {
  /**
   * Undefined: no vault of the session has one for this server. Throws a `DroverError`, a sentence for a person, where there
   * is one that can't be used: its login is over, or its authorization server can't be asked now.
   */
  tokenFor(url: string): Promise<McpToken | undefined>;
}
