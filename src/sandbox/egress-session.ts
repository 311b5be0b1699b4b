import type { SessionId } from '../protocol/ids.ts';
import type { EgressSession } from '../vault/egress.ts';
import type { SandboxOwner } from './sandbox.ts';

/**
 * What a sandbox's way out needs of its session.
 * @param owners of each session the one who asked last: a sandbox outlives who it was made for, and the ledger needs a log
 */
export function egressSession(owner: SandboxOwner, owners: ReadonlyMap<SessionId, SandboxOwner>): EgressSession {
  const { session, environment } = owner;
  const latest = () => owners.get(session) ?? owner;
  return {
    session,
    networking: 'networking' in environment.config ? environment.config.networking : undefined,
    owner: () => latest().egress,
    record: (drafts) => latest().record(drafts),
  };
}
