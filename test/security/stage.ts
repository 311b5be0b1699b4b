import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http';
import { createSecureServer, type Http2SecureServer } from 'node:http2';
import { type AddressInfo, createServer as createTcp, type Server } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import type { EventOf } from '../../src/protocol/event.ts';
import { mint } from '../../src/protocol/ids.ts';
import type { EgressOwner, EgressSession, Gate, Injectable, Tripped } from '../../src/vault/egress.ts';
import { SessionAuthority } from '../../src/vault/proxy/authority.ts';
import { createEgress, type EgressOptions } from '../../src/vault/proxy.ts';

/** A stand-in for the internet on this machine: names that only this stage knows, all of them on loopback. */
export interface Stage {
  gate: Gate;
  /** The address a client on this machine uses as its proxy; it is the gate's door. */
  port: number;
  ledger: EventOf<'drover.egress'>[];
  tripped: Tripped[];
  /** What the sandbox may use; a test may change it. */
  injectables: Injectable[];
  /** Answers https on all names; the handler sees each request. */
  secure(handler: Handler, onSocket?: (client: WebSocket, request: IncomingMessage) => void): Promise<number>;
  plain(handler: Handler): Promise<number>;
  /** Waits until what happened so far is in the ledger. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export interface StageOptions extends EgressOptions {
  networking?: EgressSession['networking'];
  injectables?: Injectable[];
  ask?: EgressOwner['ask'];
  mcpHosts?: () => readonly string[];
}

export const SECRET = 'real+value/of=the_secret-0123456789';

export const injectable = (more: Partial<Injectable> = {}): Injectable => ({
  credentialId: 'cred_test',
  placeholder: `drover_ph_${'A1b2C3d4'.repeat(4)}`,
  bound: [{ host: 'api.test' }],
  inHeader: true,
  inBody: false,
  value: async () => SECRET,
  ...more,
});

/** Certificates for the stage's own hosts: the egress is told to trust them, the client inside is not. */
export async function makeStage(options: StageOptions = {}): Promise<Stage> {
  const internet = new SessionAuthority();
  const { networking, injectables = [], ask, mcpHosts, ...more } = options;
  const egress = createEgress({
    privateRanges: ['127.0.0.1/32'],
    extraCertificates: () => [internet.certificate],
    resolve: async (host) => (host.endsWith('.test') ? ['127.0.0.1'] : []),
    secrets: async () => ({ injectables: async () => injectables, env: {} }),
    ...more,
  });
  const ledger: EventOf<'drover.egress'>[] = [];
  const tripped: Tripped[] = [];
  const gate = await egress.open({
    session: mint.session(),
    networking,
    owner: () => ({
      vaultIds: [],
      mcpHosts: mcpHosts?.() ?? [],
      onTripped: (what) => void tripped.push(what),
      ask: ask ?? (async () => false),
    }),
    record: async (drafts) => {
      for (const { event } of drafts)
        if (event.type === 'drover.egress') ledger.push({ ...event, processed_at: 'now' } as EventOf<'drover.egress'>);
    },
  });
  const servers: Server[] = [];
  const listen = async (server: Server): Promise<number> => {
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  };
  const door = createTcp((socket) => gate.accept(socket));
  const port = await listen(door);
  return {
    gate,
    port,
    ledger,
    tripped,
    injectables,
    secure: async (handler, onSocket) => {
      const server: Http2SecureServer = createSecureServer({
        allowHTTP1: true,
        SNICallback: (name, done) => done(null, internet.contextFor(name)),
      });
      server.on('request', (request: unknown, response: unknown) =>
        handler(request as IncomingMessage, response as ServerResponse),
      );
      const sockets = new WebSocketServer({ noServer: true });
      server.on('upgrade', (request: IncomingMessage, socket, head) => {
        sockets.handleUpgrade(request, socket, head, (client) => onSocket?.(client, request));
      });
      return await listen(server);
    },
    plain: (handler) => listen(createHttp(handler)),
    settled: async () => {
      await new Promise((resolve) => setTimeout(resolve, 400));
    },
    close: async () => {
      await gate.close();
      for (const server of servers) {
        server.close();
        if ('closeAllConnections' in server) (server as { closeAllConnections(): void }).closeAllConnections();
      }
    },
  };
}
