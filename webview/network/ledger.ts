import type { EventOf } from '../../src/protocol/event.ts';
import type { ExecutionId } from '../../src/protocol/ids.ts';

export type NetworkEvent = EventOf<'drover.egress'>;

/** What a session had to do with one host at one port. */
export interface HostSum {
  host: string;
  port: number;
  connections: number;
  /** Of these, refused or failed. */
  stopped: number;
  bytesOut: number;
  bytesIn: number;
  /** Why the last one was stopped that was. */
  reason: string | null;
  /** Ids of the credentials whose value went there. */
  credentials: Set<string>;
}

/** The ledger of the network as the panel needs it: sums by host, and what one attempt at a call did. */
export class NetworkLedger {
  readonly #hosts = new Map<string, HostSum>();
  readonly #byExecution = new Map<ExecutionId, NetworkEvent[]>();

  add(event: NetworkEvent): void {
    const key = `${event.host}:${event.port}`;
    let sum = this.#hosts.get(key);
    if (!sum) {
      const { host, port } = event;
      sum = { host, port, connections: 0, stopped: 0, bytesOut: 0, bytesIn: 0, reason: null, credentials: new Set() };
      this.#hosts.set(key, sum);
    }
    sum.connections += event.count;
    sum.bytesOut += event.bytes_out;
    sum.bytesIn += event.bytes_in;
    if (event.verdict !== 'allowed') {
      sum.stopped += event.count;
      sum.reason = event.reason;
    }
    for (const id of event.credential_ids) sum.credentials.add(id);
    if (event.execution_id === null) return;
    const of = this.#byExecution.get(event.execution_id);
    if (of) of.push(event);
    else this.#byExecution.set(event.execution_id, [event]);
  }

  /** Most bytes first. */
  hosts(): HostSum[] {
    return [...this.#hosts.values()].sort((a, b) => b.bytesIn + b.bytesOut - (a.bytesIn + a.bytesOut));
  }

  of(execution: ExecutionId): readonly NetworkEvent[] {
    return this.#byExecution.get(execution) ?? [];
  }
}

const REASONS: Readonly<Record<string, string>> = {
  not_listed: 'not among the allowed hosts',
  unknown_host: 'no such name',
  private_address: 'an address of this machine or a private network',
  wrong_name: 'names another host inside',
  not_http: 'neither TLS nor HTTP',
  placeholder: 'a placeholder where it does not belong',
  credential: 'the credential could not be had',
  upstream: 'the host did not answer as it should',
};

export const reasonWords = (reason: string | null): string => (reason ? (REASONS[reason] ?? reason) : '');
