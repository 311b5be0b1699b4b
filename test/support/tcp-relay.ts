import { connect, createServer, type Socket } from 'node:net';

export interface TcpRelay {
  host: string;
  /** How many connections to the engine are open. */
  readonly open: number;
  close(): Promise<void>;
}

/** An engine "elsewhere": an address that nobody takes for this machine, behind which is the engine of this one. */
export async function tcpRelay(socketPath: string, address: string): Promise<TcpRelay> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const engine = connect({ path: socketPath, allowHalfOpen: true });
    for (const socket of [client, engine]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => sockets.delete(socket));
    }
    client.pipe(engine);
    engine.pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const bound = server.address();
  if (typeof bound !== 'object' || bound === null) throw new Error('The relay has no port.');
  return {
    host: `tcp://${address}:${bound.port}`,
    get open() {
      // Each has a socket on both sides.
      return Math.ceil(sockets.size / 2);
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
