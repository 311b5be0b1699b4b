/** What a file's first bytes say it is. */
export interface Media {
  media_type: string;
  /** The Messages API takes it as an image. */
  image: boolean;
  /** For people. */
  name: string;
}

const latin1 = (...bytes: number[]): string => String.fromCharCode(...bytes);

/** First bytes (as Latin-1 text) of formats that are worth naming. */
const KNOWN: readonly [string, Media][] = [
  [latin1(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a), image('image/png', 'a PNG image')],
  [latin1(0xff, 0xd8, 0xff), image('image/jpeg', 'a JPEG image')],
  ['GIF87a', image('image/gif', 'a GIF image')],
  ['GIF89a', image('image/gif', 'a GIF image')],
  ['%PDF-', other('application/pdf', 'a PDF document')],
  [latin1(0x50, 0x4b, 0x03, 0x04), other('application/zip', 'a ZIP archive (or an office document)')],
  [latin1(0x1f, 0x8b), other('application/gzip', 'a gzip file')],
  [latin1(0x7f, 0x45, 0x4c, 0x46), other('application/x-elf', 'a program (ELF)')],
  ['SQLite format 3', other('application/vnd.sqlite3', 'a SQLite database')],
  [latin1(0xff, 0xfe), other('text/plain', 'UTF-16 text')],
  [latin1(0xfe, 0xff), other('text/plain', 'UTF-16 text')],
];

function image(media_type: string, name: string): Media {
  return { media_type, image: true, name };
}
function other(media_type: string, name: string): Media {
  return { media_type, image: false, name };
}

/** The format of a file that is not text, by its first bytes; undefined for text. Text has no NUL in its first 8 KiB. */
export function binaryMedia(bytes: Uint8Array): Media | undefined {
  const start = Buffer.from(bytes.subarray(0, 16)).toString('latin1');
  if (start.startsWith('RIFF') && start.slice(8, 12) === 'WEBP') return image('image/webp', 'a WebP image');
  const known = KNOWN.find(([magic]) => start.startsWith(magic))?.[1];
  if (known) return known;
  return bytes.subarray(0, 8192).includes(0) ? other('application/octet-stream', 'a binary file') : undefined;
}

/** `1,234 bytes`, `1.2 MiB`. */
export function sizeWords(bytes: number): string {
  if (bytes < 10_000) return `${bytes} bytes`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
