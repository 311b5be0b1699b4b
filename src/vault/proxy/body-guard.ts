import { Transform } from 'node:stream';
import { PLACEHOLDER_LENGTH, PLACEHOLDER_PREFIX } from '../placeholder.ts';

const PREFIX = Buffer.from(PLACEHOLDER_PREFIX);

/**
 * Passes a body on, and shows whatever in it may be a placeholder to `check`, before a byte of it has gone: what `check`
 * throws ends the stream there. No more is held back than may be the beginning of one.
 */
export function placeholderGuard(check: (text: string) => void): Transform {
  let held: Buffer = Buffer.alloc(0);
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const bytes = held.length > 0 ? Buffer.concat([held, chunk]) : chunk;
      let end = bytes.length;
      try {
        for (let at = bytes.indexOf(PREFIX); at >= 0; at = bytes.indexOf(PREFIX, at + PREFIX.length)) {
          if (at + PLACEHOLDER_LENGTH > bytes.length) {
            end = at;
            break;
          }
          check(bytes.toString('latin1', at, at + PLACEHOLDER_LENGTH));
        }
      } catch (error) {
        done(error instanceof Error ? error : new Error(String(error)));
        return;
      }
      if (end === bytes.length) end -= beginning(bytes);
      // A copy: the piece it comes from may be large, and this may be held for long.
      held = Buffer.from(bytes.subarray(end));
      done(null, bytes.subarray(0, end));
    },
    flush(done) {
      done(null, held);
    },
  });
}

/** How many bytes at the end may begin a placeholder. */
function beginning(bytes: Buffer): number {
  for (let length = Math.min(PREFIX.length - 1, bytes.length); length > 0; length--) {
    if (bytes.subarray(bytes.length - length).equals(PREFIX.subarray(0, length))) return length;
  }
  return 0;
}
