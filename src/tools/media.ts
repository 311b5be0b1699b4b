/** What a file's first bytes say it is. */
export interface Media {
  media_type: string;
  /** What the Messages API takes it as, if it does. */
  block?: 'image' | 'document';
  /** For people. */
  name: string;
}
/** A format that the model can be shown. */
export type Showable = Media & { block: 'image' | 'document' };

export const isShowable = (media: Media | undefined): media is Showable => media?.block !== undefined;

const latin1 = (...bytes: number[]): string => String.fromCharCode(...bytes);

/** First bytes (as Latin-1 text) of formats that are worth naming. */
const KNOWN: readonly [string, Media][] = [
  [latin1(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a), image('image/png', 'a PNG image')],
  [latin1(0xff, 0xd8, 0xff), image('image/jpeg', 'a JPEG image')],
  ['GIF87a', image('image/gif', 'a GIF image')],
  ['GIF89a', image('image/gif', 'a GIF image')],
  ['%PDF-', { media_type: 'application/pdf', block: 'document', name: 'a PDF document' }],
  [latin1(0x50, 0x4b, 0x03, 0x04), other('application/zip', 'a ZIP archive (or an office document)')],
  [latin1(0x1f, 0x8b), other('application/gzip', 'a gzip file')],
  [latin1(0x7f, 0x45, 0x4c, 0x46), other('application/x-elf', 'a program (ELF)')],
  ['SQLite format 3', other('application/vnd.sqlite3', 'a SQLite database')],
];

function image(media_type: string, name: string): Media {
  return { media_type, block: 'image', name };
}
function other(media_type: string, name: string): Media {
  return { media_type, name };
}

/** The format of a file by its first bytes; undefined where they name none. */
export function knownMedia(bytes: Uint8Array): Media | undefined {
  const start = Buffer.from(bytes.subarray(0, 16)).toString('latin1');
  if (start.startsWith('RIFF') && start.slice(8, 12) === 'WEBP') return image('image/webp', 'a WebP image');
  return KNOWN.find(([magic]) => start.startsWith(magic))?.[1];
}

/** A NUL, or more control characters than text has, near the beginning. UTF-16 has both: look for that first. */
export function isBinary(bytes: Uint8Array): boolean {
  const start = bytes.subarray(0, 8192);
  if (start.includes(0)) return true;
  let controls = 0;
  // Tab, line feed, form feed, carriage return, backspace and escape stand in texts and in logs of terminals.
  for (const byte of start) if (byte < 0x20 && !(byte >= 8 && byte <= 13) && byte !== 0x1b) controls++;
  return controls * 10 > start.length;
}

/** What a command's output is where it is no text. */
export const binaryMedia = (bytes: Uint8Array): Media | undefined =>
  knownMedia(bytes) ?? (isBinary(bytes) ? BINARY : undefined);

/** For a file that is no text and of no format with a name here. */
export const BINARY: Media = other('application/octet-stream', 'a binary file');

/** `1,234 bytes`, `1.2 MiB`. */
export function sizeWords(bytes: number): string {
  if (bytes < 10_000) return `${bytes} bytes`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
