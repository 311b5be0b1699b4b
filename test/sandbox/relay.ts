import { rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** An engine that can go away: a socket of the test's own that passes everything on to the real one. */
export interface Relay {
  path: string;
  /** Ends all connections and stops listening. */
  close(): void;
  /** Ends all connections; new ones are taken. */
  cut(): void;
  open(): Promise<void>;
}

const REFUSAL =
  'HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{"message":"broken"}';

/** `refuses` is asked of the first line of each request: those are answered with an error instead of passed on. */
export async function relayTo(
  target: string,
  path: string,
  refuses: (line: string) => boolean = () => false,
): Promise<Relay> {
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
      client.on('data', (bytes) => {
        if (refuses(bytes.subarray(0, bytes.indexOf('\r\n')).toString('latin1'))) client.write(REFUSAL);
        else engine.write(bytes);
      });
      client.on('end', () => engine.end());
      engine.pipe(client);
    });
    await new Promise<void>((resolve) => server?.listen(path, resolve));
  };
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  await open();
  return {
    path,
    open,
    cut,
    close: () => {
      server?.close();
      cut();
    },
  };
}
