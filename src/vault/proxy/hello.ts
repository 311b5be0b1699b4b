import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { getExtensionData, readTlsClientHello } from 'read-tls-client-hello';
import { parseAuthority } from './hosts.ts';
import { Refused } from './refused.ts';

/** Whoever opens a connection and then says nothing, or waits for the server to speak first, is not kept longer. */
const FIRST_WORD_MS = 15_000;
const TLS_HANDSHAKE = 0x16;
const SNI = 0;
const ALPN = 16;

/** What a client says first on a connection; its bytes are put back. */
export type FirstWord =
  | {
      kind: 'tls';
      /** As it names the host; undefined if it names none. */
      serverName: string | undefined;
      alpn: readonly string[];
    }
  | { kind: 'http' };

/** Throws `Refused` for what is neither TLS nor HTTP. */
export async function firstWord(socket: Duplex): Promise<FirstWord> {
  const timer = setTimeout(() => socket.destroy(new Error('nothing was said')), FIRST_WORD_MS);
  try {
    const byte = await firstByte(socket);
    if (byte !== TLS_HANDSHAKE) {
      // Every HTTP method begins with a capital letter, and so does the preface of HTTP/2.
      if (byte >= 0x41 && byte <= 0x5a) return { kind: 'http' };
      throw new Refused('not_http', 'only TLS and HTTP are passed on');
    }
    const hello = await readTlsClientHello(socket);
    const names = hello.extensions.filter(({ id }) => id === SNI);
    if (names.length > 1) throw new Refused('wrong_name', 'the connection names two servers');
    return {
      kind: 'tls',
      serverName: getExtensionData(hello, SNI)?.serverName,
      alpn: getExtensionData(hello, ALPN)?.protocols ?? [],
    };
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Refused('not_http', 'only TLS and HTTP are passed on, and this could not be read as either', {
      cause: error,
    });
  } finally {
    clearTimeout(timer);
  }
}

async function firstByte(socket: Duplex): Promise<number> {
  for (;;) {
    const chunk: Buffer | null = socket.read();
    if (chunk && chunk.length > 0) {
      socket.unshift(chunk);
      return chunk[0] ?? 0;
    }
    if (socket.readableEnded || socket.destroyed) throw new Error('it hung up');
    await Promise.race([once(socket, 'readable'), once(socket, 'end'), once(socket, 'close')]);
  }
}

/** Whether the name in a TLS greeting is the host that was asked for. An address has no name. */
export function namesHost(serverName: string | undefined, host: string): boolean {
  const isAddress = host.includes(':') || /^[\d.]+$/.test(host);
  if (serverName === undefined) return isAddress;
  return parseAuthority(serverName, 'https')?.host === host;
}
