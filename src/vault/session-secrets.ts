import type { SessionId, VaultId } from '../protocol/ids.ts';
import { type Credential, type CredentialAuth, credentialKey } from '../protocol/vault.ts';
import type { Bound, Injectable, SessionSecrets } from './egress.ts';
import { type GitLogin, gitHelperEnv } from './git-helper.ts';
import { placeholderFor } from './placeholder.ts';
import type { Vaults } from './vault.ts';

/**
 * What one session may use of its vaults: placeholders for the sandbox, and for the proxy what they stand for. Where two
 * vaults have a credential for the same thing, the first counts.
 * @param ids in the order in which the person chose them
 */
export function sessionSecrets(vaults: Vaults, session: SessionId, ids: readonly VaultId[]): SessionSecrets {
  const inUse = () => firstOfEach(vaults.living(ids));
  return {
    async injectables() {
      return inUse().map((credential) => injectable(vaults, session, credential));
    },
    env: sandboxEnv(session, inUse()),
  };
}

function firstOfEach(credentials: readonly Credential[]): Credential[] {
  const byKey = new Map<string, Credential>();
  for (const one of credentials) if (!byKey.has(credentialKey(one))) byKey.set(credentialKey(one), one);
  return [...byKey.values()];
}

function injectable(vaults: Vaults, session: SessionId, { id, auth }: Credential): Injectable {
  const location = auth.type === 'environment_variable' ? auth.injection_location : undefined;
  return {
    credentialId: id,
    placeholder: placeholderFor(session, id),
    bound: boundOf(auth),
    inHeader: location?.header ?? true,
    inBody: location?.body ?? false,
    value: () => vaults.value(id),
  };
}

function boundOf(auth: CredentialAuth): Injectable['bound'] {
  switch (auth.type) {
    case 'environment_variable':
      return auth.networking.type === 'unrestricted' ? 'any' : auth.networking.allowed_hosts.map((host) => ({ host }));
    case 'git_https':
      return [hostAndPort(`https://${auth.host}`)];
    default:
      return [hostAndPort(auth.mcp_server_url)];
  }
}

function hostAndPort(url: string): Bound {
  const { hostname, port } = new URL(url);
  return { host: hostname, ...(port ? { port: Number(port) } : {}) };
}

/** MCP tokens have no variable: their servers are spoken to from outside the sandbox. */
function sandboxEnv(session: SessionId, credentials: readonly Credential[]): Record<string, string> {
  const env: Record<string, string> = {};
  const logins: GitLogin[] = [];
  for (const { id, auth } of credentials) {
    const placeholder = placeholderFor(session, id);
    if (auth.type === 'environment_variable') env[auth.secret_name] = placeholder;
    else if (auth.type === 'git_https') logins.push({ host: auth.host, user: auth.user, placeholder });
  }
  return { ...env, ...gitHelperEnv(logins) };
}
