import type { Duplex } from 'node:stream';
import type { Networking } from '../protocol/environment.ts';
import type { ExecutionId, SessionId, VaultId } from '../protocol/ids.ts';
import type { Draft } from '../protocol/record.ts';

/*
 * The interface of the egress proxy: the only file of vault/ that sandbox/ may import.
 * Real values exist behind `Injectable.value` alone, which is called outside the sandbox at the moment of use.
 */

/** Where a credential may go. Scheme https; without a port 443. `host` is a name, an IPv4 address or `*.` and a domain. */
export interface Bound {
  host: string;
  port?: number;
}

/** A credential as the proxy may use it. */
export interface Injectable {
  credentialId: string;
  /** What the sandbox has in place of the value: opaque, unique per session and credential. */
  placeholder: string;
  /** `any`: every host the environment allows, over https. */
  bound: 'any' | readonly Bound[];
  inHeader: boolean;
  inBody: boolean;
  /** The real value. Asked anew for each request, never kept beyond it. Throws when the credential is gone. */
  value(): Promise<string>;
}

/** What one session's sandbox may use. */
export interface SessionSecrets {
  /** Asked anew at each connection, so that a rotated, added or archived credential counts at once. */
  injectables(): Promise<readonly Injectable[]>;
  /** Variables of the sandbox, placeholders only. */
  env: Readonly<Record<string, string>>;
}

/** A placeholder on its way to where its credential does not belong, or one of nobody's (`credentialId` null). */
export interface Tripped {
  credentialId: string | null;
  where: 'host' | 'url' | 'header' | 'body';
  host: string;
  port: number;
  method?: string;
  execution?: ExecutionId;
}

/** A host that was refused only because no rule names it. */
export interface HostWanted {
  host: string;
  port: number;
  execution?: ExecutionId;
}

/** What a session's way out needs to know of the session, and tells it. */
export interface EgressOwner {
  /** Whose credentials the sandbox may use, in the order in which they count. */
  vaultIds: readonly VaultId[];
  /** Hosts of the agent's MCP servers, which `allow_mcp_servers` opens. */
  mcpHosts: readonly string[];
  /** Told before the request is refused. */
  onTripped(what: Tripped): void;
  /** Whether a host that no rule names is let through this once. The connection waits for the answer. */
  ask(wanted: HostWanted): Promise<boolean>;
}

export interface EgressSession {
  session: SessionId;
  /** Absent = limited to package managers. */
  networking: Networking | undefined;
  /** Where inside its files will lie, absolute, and at which port of loopback it is reached. Default: `INSIDE`. */
  inside?: { folder: string; port: number };
  /** Asked for each time: a sandbox outlives the one it was made for. Undefined: nobody is there to be told or asked. */
  owner(): EgressOwner | undefined;
  /** Appends the ledger's `drover.egress` to the session's log. */
  record(drafts: Draft[]): Promise<void>;
}

/** A file to be placed in a sandbox, readable for everyone inside. */
export interface InsideFile {
  /** Absolute, inside. */
  path: string;
  content: string;
}

/** One sandbox's way out. Ended by `close`. */
export interface Gate {
  /** Part of the address in `env`: who has it may use this way out. */
  readonly token: string;
  /** Variables every process inside gets: where the proxy is, whom to trust, and the placeholders. */
  readonly env: Readonly<Record<string, string>>;
  /** The session's CA, and a bundle of it with the public ones. */
  readonly files: readonly InsideFile[];
  /** Variables of one call: those of `env` that are its own, so that what it does is put down to it, and the placeholders. */
  envFor(execution: ExecutionId): Readonly<Record<string, string>>;
  /**
   * From now on the program that `envFor(server)` was given to works for a call, so what it does is put down to that.
   * Returns how to say that it is over.
   */
  actFor(server: ExecutionId, call: ExecutionId): () => void;
  /** A connection that was opened inside to the address `env` names. */
  accept(connection: Duplex): void;
  /** Resolves when what a call that has ended did is in the log: soon, even if it left connections open. */
  settle(execution: ExecutionId): Promise<void>;
  /** Ends every connection; what the ledger still holds is written. */
  close(): Promise<void>;
}

/** Opens ways out. One per extension host. */
export interface Egress {
  /**
   * `token`: of a sandbox that is found again, as its variables have it. Absent = a fresh one.
   */
  open(session: EgressSession, token?: string): Promise<Gate>;
}

/** Where inside a container the proxy is reached: always the same, so that one found again needs no new variables. */
export const INSIDE = { host: '127.0.0.1', port: 3128, folder: '/run/drover' } as const;
