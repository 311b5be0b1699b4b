import { z } from 'zod';
import { CredentialId, VaultId } from './ids.ts';

/*
 * Vaults and what is known of the credentials in them. Never a value: those are in the editor's secret storage alone,
 * and no schema here has a field for one.
 */

/** Most credentials of one vault, archived ones not counted. */
export const MAX_CREDENTIALS = 20;
/** Most hosts one credential may be bound to. */
export const MAX_HOSTS = 16;

/** A host name, an IPv4 address, or `*.` and a domain for all hosts below it. No scheme, port or path. */
const BoundHost = z
  .string()
  .max(253)
  .regex(
    /^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i,
    'must be a bare host name, an IPv4 address, or *. and a domain',
  )
  .refine((host) => !/^\*\.[^.]+$/.test(host), 'a whole top-level domain is too wide');

/** True where a secret may be sent: over https, or to this machine itself. */
export function maySendSecret(url: string): boolean {
  const { protocol, hostname } = URL.parse(url) ?? {};
  return protocol === 'https:' || (protocol === 'http:' && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname ?? ''));
}

/** Where a token goes. */
const TokenUrl = z
  .url({ protocol: /^https?$/, error: 'must be an http or https address', abort: true })
  .refine((url) => !/^https?:\/\/[^/?#]*@/i.test(url), 'must hold no login')
  .refine(maySendSecret, 'must be https unless it is on this machine: a token goes there');

const OneLine = (max: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(max)
    .regex(/^\P{Cc}*$/u, 'must not have control characters');

/**
 * Names that steer programs instead of being read by them: a placeholder there would break the sandbox, or be a way in.
 */
const STEERING =
  /^(PATH|HOME|SHELL|USER|PWD|IFS|ENV|BASH_.*|SHELLOPTS|PS4|PROMPT_COMMAND|TMPDIR|LD_.*|DYLD_.*|NODE_OPTIONS|NODE_EXTRA_CA_CERTS|PYTHON(PATH|HOME|STARTUP)|PERL5?(LIB|OPT)|RUBY(OPT|LIB)|JAVA_TOOL_OPTIONS|GIT_.*|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|(https?|all|no|ftp)_proxy|DROVER_.*)$/i;

const SecretName = z
  .string()
  .max(128)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable')
  .refine((name) => !STEERING.test(name), 'is a name that steers programs in the sandbox, so it can’t hold a secret');

/** To which hosts the value may go; the environment's own network policy must allow them as well. */
const CredentialNetworking = z.discriminatedUnion('type', [
  z.object({ type: z.literal('unrestricted') }),
  z.object({ type: z.literal('limited'), allowed_hosts: z.array(BoundHost).min(1).max(MAX_HOSTS) }),
]);

/** How a new access token is had for an old one. The refresh token and the client's secret are values. */
const OauthRefresh = z.object({
  token_endpoint: TokenUrl,
  client_id: OneLine(512),
  scope: OneLine(2048).optional(),
  resource: OneLine(2048).optional(),
  token_endpoint_auth: z.object({ type: z.enum(['none', 'client_secret_basic', 'client_secret_post']) }),
});

/** What a credential is for. `environment_variable`, `static_bearer` and `mcp_oauth` are the public ones. */
export const CredentialAuth = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('environment_variable'),
    secret_name: SecretName,
    networking: CredentialNetworking,
    /** Where the proxy puts the value in. Absent = in headers only. */
    injection_location: z.object({ header: z.boolean().optional(), body: z.boolean().optional() }).optional(),
  }),
  z.object({ type: z.literal('static_bearer'), mcp_server_url: TokenUrl }),
  z.object({
    type: z.literal('mcp_oauth'),
    mcp_server_url: TokenUrl,
    expires_at: z.iso.datetime().optional(),
    refresh: OauthRefresh.optional(),
  }),
  /** A user's token for git over https, for one host; with `:port` where it is not 443. */
  z.object({
    type: z.literal('git_https'),
    host: z
      .string()
      .max(253)
      .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/i, 'must be a host name, with :port if it is not 443'),
    user: OneLine(255).refine((user) => !user.includes(':'), 'must not have a colon'),
  }),
]);
export type CredentialAuth = z.infer<typeof CredentialAuth>;
export type McpOauth = Extract<CredentialAuth, { type: 'mcp_oauth' }>;

/**
 * Where the value is. `stored`: in the editor's secret storage, under the credential's id. `authentication_provider`:
 * with one of the editor's own sign-ins, such as GitHub's; it is asked for at each use and kept nowhere.
 */
const CredentialSource = z.discriminatedUnion('type', [
  z.object({ type: z.literal('stored') }),
  z.object({
    type: z.literal('authentication_provider'),
    provider_id: OneLine(128),
    scopes: z.array(OneLine(256)).max(20),
  }),
]);

const Metadata = z
  .record(z.string().min(1).max(64), z.string().max(512))
  .refine((pairs) => Object.keys(pairs).length <= 16, 'has more than 16 pairs');

export const VaultDefinition = z.object({
  display_name: OneLine(255),
  metadata: Metadata.optional(),
});
export type VaultDefinition = z.infer<typeof VaultDefinition>;

export const Vault = VaultDefinition.extend({
  id: VaultId,
  type: z.literal('vault'),
  created_at: z.string(),
  updated_at: z.string(),
  archived_at: z.string().nullable(),
});
export type Vault = z.infer<typeof Vault>;

export const CredentialDefinition = z.object({
  display_name: OneLine(255).optional(),
  metadata: Metadata.optional(),
  auth: CredentialAuth,
  /** Absent = `stored`. */
  source: CredentialSource.optional(),
});
export type CredentialDefinition = z.infer<typeof CredentialDefinition>;

export const Credential = CredentialDefinition.extend({
  id: CredentialId,
  type: z.literal('vault_credential'),
  vault_id: VaultId,
  created_at: z.string(),
  /** When the value was last put in anew, or the description changed. */
  updated_at: z.string(),
  /** Archived: the value is gone for good, the record stays. */
  archived_at: z.string().nullable(),
  /** When its token could be renewed no more: the person has to log in anew. Absent = it can, or needs not be. */
  refresh_failed_at: z.string().optional(),
});
export type Credential = z.infer<typeof Credential>;

/** What tells a credential from the others of its vault; two living ones must not share it. */
export function credentialKey({ auth }: Pick<Credential, 'auth'>): string {
  switch (auth.type) {
    case 'environment_variable':
      return `env ${auth.secret_name}`;
    case 'git_https':
      return `git ${auth.host.toLowerCase()}`;
    default:
      return `mcp ${mcpServerKey(auth.mcp_server_url)}`;
  }
}

/** What people call it: its own name, or what it is for. */
export function credentialName(credential: Pick<Credential, 'auth' | 'display_name'>): string {
  const { auth, display_name } = credential;
  if (display_name) return display_name;
  if (auth.type === 'environment_variable') return auth.secret_name;
  return auth.type === 'git_https' ? `${auth.user} at ${auth.host}` : auth.mcp_server_url;
}

/** An MCP server's address as it is compared: scheme and host in lower case, no default port, no slash at the end. */
export function mcpServerKey(url: string): string {
  const { protocol, host, pathname, search } = new URL(url);
  return `${protocol}//${host}${pathname.replace(/\/+$/, '')}${search}`;
}
