import type { Environment, Networking } from '../protocol/environment.ts';
import type { Question } from '../session/state.ts';
import type { LiveSession } from './live-session.ts';

/** What a new environment may reach if it says nothing. */
const USUAL: Networking = { type: 'limited', allowed_hosts: [], allow_package_managers: true };

/**
 * Names the host in the session's environment, so that sessions that start later need not ask. The session itself goes
 * by the answer in its log. Throws `CatalogError` where the environment is not in the catalog any more.
 */
export async function allowHost(session: LiveSession, host: NonNullable<Question['host']>): Promise<void> {
  const catalog = await session.project.catalog();
  const environment = catalog.environment(session.state?.environment.id ?? '');
  if (!environment || environment.archived_at !== null) return;
  const config = withHost(environment.config, host.name);
  if (config) await catalog.updateEnvironment(environment.id, { config });
}

/** Undefined if there is nothing to change: it may go there already, or it has no rules. */
function withHost(config: Environment['config'], host: string): Environment['config'] | undefined {
  if (config.type === 'host') return undefined;
  const before = config.networking ?? USUAL;
  if (before.type === 'unrestricted') return undefined;
  const limited = before.type === 'limited' ? before : { type: 'limited' as const, allowed_hosts: [] };
  if (limited.allowed_hosts.includes(host)) return undefined;
  return { ...config, networking: { ...limited, allowed_hosts: [...limited.allowed_hosts, host] } };
}
