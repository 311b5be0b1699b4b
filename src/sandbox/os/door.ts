import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { Gate } from '../../vault/egress.ts';

/** How long who connects may take to say what it wants, and how much it may say. */
const HEAD_MS = 10_000;
const HEAD_BYTES = 64 * 1024;
const WANTS_LOGIN =
  'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="drover"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

/**
 * The port that the runtime lets its sandboxes reach, one for all of them: the token says whose way out a connection takes.
 * It is open on this machine's loopback, so it answers nobody without one.
 */
export class OsDoor {
  readonly port: number;
  readonly #server: Server;
  readonly #gates: Map<string, Gate>;

  private constructor(server: Server, gates: Map<string, Gate>) {
    this.#server = server;
    this.#gates = gates;
    const address = server.address();
    this.port = isPort(address) ? address.port : 0;
  }

  static async open(): Promise<OsDoor> {
    const gates = new Map<string, Gate>();
    const server = createServer({ allowHalfOpen: true }, (socket) => receive(socket, gates));
    await new Promise<void>((resolve, reject) => {
      // Also later: where this process has no file left to open, a connection can't be taken, and that is all.
      server.on('error', reject);
      server.listen(0, '127.0.0.1', resolve);
    });
    server.unref();
    return new OsDoor(server, gates);
  }

  add(gate: Gate): void {
    this.#gates.set(gate.token, gate);
  }

  remove(gate: Gate): void {
    this.#gates.delete(gate.token);
  }

  close(): void {
    this.#server.close();
    this.#gates.clear();
  }
}

const isPort = (address: AddressInfo | string | null): address is AddressInfo =>
  typeof address === 'object' && address !== null;

/** Reads as far as the login, puts it back, and hands the connection over: the gate reads it anew. */
function receive(socket: Socket, gates: ReadonlyMap<string, Gate>): void {
  let head: Buffer = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), HEAD_MS);
  const onError = () => socket.destroy();
  socket.on('error', onError);
  socket.once('close', () => clearTimeout(timer));
  const onData = (chunk: Buffer) => {
    head = Buffer.concat([head, chunk]);
    if (!head.includes('\r\n\r\n') && head.length < HEAD_BYTES) return;
    clearTimeout(timer);
    socket.off('data', onData);
    socket.pause();
    const gate = gates.get(tokenIn(head.toString('latin1')));
    if (!gate) {
      socket.end(WANTS_LOGIN, () => socket.destroy());
      return;
    }
    socket.off('error', onError);
    socket.unshift(head);
    gate.accept(socket);
    socket.resume();
  };
  socket.on('data', onData);
}

function tokenIn(head: string): string {
  const basic = /^proxy-authorization:[ \t]*basic[ \t]+(\S+)/im.exec(head)?.[1] ?? '';
  const login = Buffer.from(basic, 'base64').toString('utf8');
  return login.slice(login.indexOf(':') + 1);
}
