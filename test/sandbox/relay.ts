import { rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** An engine that can go away: a socket of the test's own that passes everything on to the real one. */
export interface Relay {
  path: string;
  /** Ends all connections and stops listening. */
  close(): void;
  open(): Promise<void>;
}

export async function relayTo(target: string, path: string): Promise<Relay> {
  const sockets = new Set<Socket>();
  let server: Server | undefined;
  const open = async () => {
    await rm(path, { force: true });
    server = createServer({ allowHalfOpen: true }, (client) => {
      const engine = connect({ path: target, allowHalfOpen: true });
      for (const socket of [client, engine]) {
        sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => sockets.delete(socket));
      }
      client.pipe(engine);
      engine.pipe(client);
    });
    await new Promise<void>((resolve) => server?.listen(path, resolve));
  };
  await open();
  return {
    path,
    open,
    close: () => {
      server?.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
