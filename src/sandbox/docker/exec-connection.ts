import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Connection } from '../channel.ts';
import { demultiplexer } from './demultiplex.ts';

/** An engine's attached exec as a runner's two ends. What the exec says on standard error is not for us. */
export function execConnection(stream: Duplex): Connection {
  stream.on('error', () => {});
  return {
    write: (data) => void stream.write(data),
    listen: (data, end) => {
      stream.on(
        'data',
        demultiplexer((kind, chunk) => {
          if (kind === 'out') data(chunk);
        }),
      );
      // The engine may vanish with an error, with `end`, or with `close` alone: none of them says how it ended.
      for (const event of ['end', 'close', 'error']) stream.once(event, end);
    },
    destroy: () => void stream.destroy(),
    hold: (needed) => {
      if (!(stream instanceof Socket)) return;
      if (needed) stream.ref();
      else stream.unref();
    },
  };
}
