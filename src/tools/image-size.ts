/*
 * How large an image is, from its own header. The Messages API refuses images that are damaged or too large, and then
 * every later request too, since the image stays in the conversation: so it is looked at before it is shown.
 */

export interface ImageSize {
  width: number;
  height: number;
}

/** Pixels. Null if the header is not whole. */
export function imageSize(bytes: Uint8Array, mediaType: string): ImageSize | null {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const size = sizes[mediaType]?.(data) ?? null;
  return size && size.width > 0 && size.height > 0 ? size : null;
}

const sizes: Readonly<Record<string, (data: Buffer) => ImageSize | null>> = {
  'image/png': (data) =>
    data.length >= 33 && data.toString('latin1', 12, 16) === 'IHDR'
      ? { width: data.readUInt32BE(16), height: data.readUInt32BE(20) }
      : null,
  'image/gif': (data) => (data.length >= 13 ? { width: data.readUInt16LE(6), height: data.readUInt16LE(8) } : null),
  'image/jpeg': jpegSize,
  'image/webp': webpSize,
};

/** The first frame header; the segments before it are passed over by their lengths. */
function jpegSize(data: Buffer): ImageSize | null {
  let at = 2;
  while (at + 9 <= data.length) {
    if (data[at] !== 0xff) return null;
    const marker = data[at + 1] ?? 0;
    // Any number of 0xFF may stand before a marker.
    if (marker === 0xff) at++;
    else if (isFrame(marker)) return { width: data.readUInt16BE(at + 7), height: data.readUInt16BE(at + 5) };
    else at += 2 + data.readUInt16BE(at + 2);
  }
  return null;
}

/** SOF0…SOF15, without the tables (DHT, JPG, DAC) that share their range. */
const isFrame = (marker: number): boolean => marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);

function webpSize(data: Buffer): ImageSize | null {
  if (data.length < 30) return null;
  switch (data.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return { width: data.readUInt16LE(26) & 0x3fff, height: data.readUInt16LE(28) & 0x3fff };
    case 'VP8L': {
      const bits = data.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 };
    }
    case 'VP8X':
      return { width: data.readUIntLE(24, 3) + 1, height: data.readUIntLE(27, 3) + 1 };
    default:
      return null;
  }
}
