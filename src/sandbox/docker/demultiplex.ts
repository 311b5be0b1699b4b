const HEADER = 8;
const STDERR = 2;

/**
 * Splits the engine's multiplexed exec stream: frames of an 8-byte header (stream number, three zeros,
 * big-endian length) and so many bytes.
 */
export function demultiplexer(on: (stream: 'out' | 'err', chunk: Buffer) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    let data = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
    while (data.length >= HEADER) {
      const size = data.readUInt32BE(4);
      if (data.length < HEADER + size) break;
      if (size > 0) on(data[0] === STDERR ? 'err' : 'out', data.subarray(HEADER, HEADER + size));
      data = data.subarray(HEADER + size);
    }
    // A copy: otherwise a few pending bytes would keep a whole network buffer alive.
    rest = Buffer.from(data);
  };
}
