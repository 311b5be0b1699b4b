import type { Sandbox } from '../sandbox/sandbox.ts';
import { readText, type TextFile } from './detect.ts';
import { STRETCH } from './file-scripts.ts';
import { type Answer, ask } from './files.ts';
import { BINARY, isBinary, knownMedia, sizeWords } from './media.ts';
import { failed, ok } from './outcomes.ts';
import { notShown } from './show-media.ts';
import { readStored, sha256 } from './stored-file.ts';
import { encodingNotes, type Range, READ_CAP, shownLines, shownPiece } from './text-lines.ts';
import type { Outcome, ToolContext } from './tools.ts';

/** Bytes. UTF-16 can't be cut at its line ends by the programs in a sandbox, so it is fetched whole up to here. */
const WIDE_CAP = 16 * 1024 * 1024;
/** Bytes of its beginning from which, with the stretch itself, a large file's encoding is told. */
const SAMPLE = 64 * 1024;

/** A stretch of a file that is too large to be fetched whole. `start` is its beginning. */
export async function readLarge(
  sandbox: Sandbox,
  context: ToolContext,
  path: string,
  start: Uint8Array,
  range: Range,
  hint: string | undefined,
): Promise<Outcome> {
  const sample = wholeLines(start.subarray(0, SAMPLE));
  const first = knownMedia(start) ? null : readText(sample, hint);
  if (first?.encoding.name.startsWith('UTF-16')) return await readWide(sandbox, context, path, range, hint);
  const answer = await stretch(sandbox, context, path, range);
  const [size = 0, lines = 0] = answer.fields.slice(0, 2).map(Number);
  const hash = answer.fields[2];
  const seen = hash === undefined || hash === '-' ? {} : { fileSha256: hash };
  if (!first || isBinary(answer.stdout)) return { ...notShown(path, knownMedia(start) ?? BINARY, size), ...seen };
  const cut = answer.stdout.length >= READ_CAP;
  const bytes = cut ? wholeLines(answer.stdout) : answer.stdout;
  const file = readText(Buffer.concat([sample, bytes]), hint) ?? first;
  const piece = { text: textOf(bytes, file), first: range.first, lines, size, cut };
  return { ...ok(shownPiece(path, piece, range, encodingNotes(file))), ...seen };
}

/** Bytes of a file. */
export async function sizeOf(sandbox: Sandbox, context: ToolContext, path: string): Promise<number> {
  const answer = await stretch(sandbox, context, path, { first: 1, last: 1, asked: false });
  return Number(answer.fields[0]);
}

async function stretch(sandbox: Sandbox, context: ToolContext, path: string, range: Range): Promise<Answer> {
  const lines = range.last > 0 ? range.last - range.first + 1 : 0;
  return await ask(sandbox, context, STRETCH, {
    path,
    args: [String(range.first), String(lines), String(READ_CAP)],
    fields: 4,
    maxBytes: READ_CAP * 2,
  });
}

async function readWide(
  sandbox: Sandbox,
  context: ToolContext,
  path: string,
  range: Range,
  hint: string | undefined,
): Promise<Outcome> {
  const file = await readStored(sandbox, context, path, WIDE_CAP);
  const text = file.more ? null : readText(file.bytes, hint);
  if (!text)
    return failed(
      `${path} is UTF-16 text of more than ${sizeWords(WIDE_CAP)}, which can't be cut into lines here. Convert it with bash (iconv) and read that.`,
    );
  const shown = shownLines(path, text.text, file.bytes.length, range, encodingNotes(text));
  return { ...ok(shown), fileSha256: sha256(file.bytes) };
}

/** Without the beginning of a line, or at least of a character of UTF-8, that was cut off. */
function wholeLines(bytes: Uint8Array): Uint8Array {
  const end = bytes.lastIndexOf(0x0a);
  if (end !== -1) return bytes.subarray(0, end + 1);
  const lead = bytes.findLastIndex((byte) => byte < 0x80 || byte >= 0xc0);
  return bytes.length - lead < 4 && (bytes[lead] ?? 0) >= 0xc0 ? bytes.subarray(0, lead) : bytes;
}

/** A stretch in its file's encoding. One long line may be cut in the middle of a character, which is then left out. */
function textOf(bytes: Uint8Array, file: TextFile): string {
  for (let cut = 0; cut < 4; cut++) {
    const text = file.encoding.decode(bytes.subarray(0, bytes.length - cut));
    if (text !== null) return text;
  }
  return new TextDecoder().decode(bytes);
}
