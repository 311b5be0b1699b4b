/** A token for one server, as it is used for one request. It is nowhere kept beyond that. */
export interface McpToken {
  credentialId: string;
  token: string;
  /** A fresh one, after the server has refused this; undefined where there is no way to get one. */
  refreshed(): Promise<string | undefined>;
}

/** What a session's vaults have for MCP servers; the first that has something counts. `src/vault/mcp-tokens.ts` has it. */
export interface McpTokens {
  tokenFor(url: string): Promise<McpToken | undefined>;
}
