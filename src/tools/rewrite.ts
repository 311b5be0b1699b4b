import { readText, type TextFile, UTF8_BOM } from './detect.ts';
import { encodingNamed, isAscii, UTF8 } from './encodings.ts';
import { LfView } from './lf-view.ts';

/** A file's new bytes, and what was kept or changed of how it was written, in words. */
export interface Rewritten {
  bytes: Uint8Array;
  notes: string[];
}

const asUtf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
const joined = (bom: Uint8Array, bytes: Uint8Array): Uint8Array => new Uint8Array(Buffer.concat([bom, bytes]));

/** `content` as a new file: UTF-8, or what the person's editor would write. `hint` is a name as in `files.encoding`. */
export function newFile(content: string, hint: string | undefined): Rewritten {
  if (hint === 'utf8bom') return { bytes: joined(UTF8_BOM, asUtf8(content)), notes: ['with a byte order mark'] };
  const wanted = hint === undefined ? UTF8 : (encodingNamed(hint) ?? UTF8);
  // UTF-16 gets its mark: without it hardly anything reads it.
  const wide = wanted.name.startsWith('UTF-16');
  const bytes = wanted.encode(wide ? `\ufeff${content}` : content);
  if (wanted === UTF8 || 'missing' in bytes) return { bytes: asUtf8(content), notes: [] };
  return { bytes, notes: wide || !isAscii(content) ? [`in ${wanted.name}`] : [] };
}

/**
 * `content` in the place of what is there: in its encoding, with its byte order mark and line endings, as far as the
 * new text allows. `old` is the whole file.
 */
export function rewrite(old: Uint8Array, content: string, hint: string | undefined): Rewritten {
  if (old.length === 0) return newFile(content, hint);
  const file = readText(old, hint);
  if (!file) return { bytes: asUtf8(content), notes: ['it was no text before'] };
  const endings = withEndings(file, content);
  const fresh = endings.text.replace(/^\ufeff/, '');
  const bytes = encoded(file, fresh);
  if ('missing' in bytes) {
    const was =
      file.how === 'unknown'
        ? 'its encoding was not known'
        : `it was ${file.encoding.name}, which has no "${bytes.missing}"`;
    return { bytes: asUtf8(fresh), notes: [`now UTF-8: ${was}`, ...endings.notes] };
  }
  const kept = file.encoding === UTF8 || isAscii(fresh) ? [] : [`in ${file.encoding.name} as before`];
  const mark = file.bom.length > 0 ? ['byte order mark kept'] : [];
  return { bytes: joined(file.bom, bytes), notes: [...kept, ...mark, ...endings.notes] };
}

/** In an unknown encoding only ASCII can be written without guessing. */
function encoded(file: TextFile, text: string): Uint8Array | { missing: string } {
  if (file.how !== 'unknown' || isAscii(text)) return file.encoding.encode(text);
  return { missing: [...text].find((character) => character > '\x7f') ?? '' };
}

function withEndings(file: TextFile, content: string): { text: string; notes: string[] } {
  const was = new LfView(file.text);
  const is = new LfView(content);
  if (was.mixed) return { text: content, notes: ['its line endings were mixed, they are now as given'] };
  if (was.ending === '\n' || is.mixed || is.ending === '\r\n' || !content.includes('\n'))
    return { text: content, notes: is.mixed && was.ending === '\r\n' ? ['its line endings were all CRLF'] : [] };
  return { text: content.replaceAll('\n', '\r\n'), notes: ['CRLF line endings kept'] };
}
