import { hkdfSync } from 'node:crypto';
import * as tls from 'node:tls';
import type { SessionId, VaultId } from '../protocol/ids.ts';
import type { Egress, EgressSession, Gate, SessionSecrets } from './egress.ts';
import { Addresses, type Resolve, resolveByDns } from './proxy/addresses.ts';
import { SessionAuthority } from './proxy/authority.ts';
import { Dialer } from './proxy/dial.ts';
import { SessionGate } from './proxy/gate.ts';

export interface EgressOptions {
  /** What a session's sandbox may use of these vaults. Absent: nothing. */
  secrets?: (session: SessionId, vaults: readonly VaultId[]) => Promise<SessionSecrets>;
  /** URL of a proxy above us (`http.proxy`), or undefined. Asked for each connection. */
  upstreamProxy?: () => string | undefined;
  /** PEM certificates to trust beside the public ones and the system's. */
  extraCertificates?: () => readonly string[];
  /** Address ranges (CIDR) a sandbox may be connected to although they are private: of an intranet, or a test's own. */
  privateRanges?: readonly string[];
  /**
   * Kept where values are kept. With it a session's authority is the same again in the next process, without being written
   * anywhere; without, what still runs in a sandbox that is taken over has to be started again to reach bound hosts.
   */
  authorityKey?: Uint8Array;
  /** Default: the system's. */
  resolve?: Resolve;
}

/** Opens ways out of sandboxes. It listens nowhere and keeps nothing but what its gates hold. */
export function createEgress(options: EgressOptions = {}): Egress {
  const trusted = () => [...new Set([...systemCertificates(), ...(options.extraCertificates?.() ?? [])])];
  const dialer = new Dialer({
    addresses: new Addresses(options.resolve ?? resolveByDns, options.privateRanges ?? []),
    upstreamProxy: options.upstreamProxy ?? (() => undefined),
    trusted,
  });
  const authorities = new Map<SessionId, SessionAuthority>();
  return {
    async open(session: EgressSession, token?: string): Promise<Gate> {
      const secrets = await options.secrets?.(session.session, session.owner()?.vaultIds ?? []);
      const authority = authorityOf(authorities, session.session, options.authorityKey);
      return new SessionGate(session, { token, secrets, dialer, authority, trusted: trusted() });
    },
  };
}

/** Authorities that are kept for the next sandbox of their session, which may be as soon as its next call. */
const KEPT = 50;

function authorityOf(
  all: Map<SessionId, SessionAuthority>,
  session: SessionId,
  key: Uint8Array | undefined,
): SessionAuthority {
  const made = all.get(session) ?? new SessionAuthority(key && seedOf(key, session));
  // The one that was used last stands last.
  all.delete(session);
  all.set(session, made);
  for (const oldest of [...all.keys()].slice(0, -KEPT)) all.delete(oldest);
  return made;
}

const seedOf = (key: Uint8Array, session: SessionId): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', key, '', session, 32));

/** The public roots Node ships, and what the operating system trusts (a company's own). */
function systemCertificates(): string[] {
  // Older runtimes know only their own.
  if (typeof tls.getCACertificates !== 'function') return [...tls.rootCertificates];
  return [...tls.rootCertificates, ...tls.getCACertificates('system'), ...tls.getCACertificates('extra')];
}
