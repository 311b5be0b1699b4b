import type { Sandbox } from '../sandbox/sandbox.ts';
import { readText } from './detect.ts';
import { BINARY, isShowable, knownMedia, type Showable } from './media.ts';
import { failed, ok } from './outcomes.ts';
import { readLarge, sizeOf } from './read-large.ts';
import { inputSchema, ReadInput } from './schemas.ts';
import { MEDIA_CAPS, notShown, showMedia } from './show-media.ts';
import { readStored, type StoredFile, sha256 } from './stored-file.ts';
import { encodingNotes, type Range, READ_CAP, shownLines } from './text-lines.ts';
import { type Acting, oneLine, type Tool } from './tool.ts';
import type { Outcome } from './tools.ts';

/** Bytes fetched whole: larger files are cut inside the sandbox. */
const WHOLE_CAP = 1024 * 1024;

export const read: Tool<typeof ReadInput> = {
  spec: {
    name: 'read',
    description: `Reads a text file of the workspace, an image, or a PDF document. At most ${READ_CAP / 1024} KiB of text come back at once; view_range gives any lines of a larger file.`,
    input_schema: inputSchema(ReadInput),
    idempotent: true,
    sandboxed: true,
    summary: (input) => {
      const [from, to] = Array.isArray(input.view_range) ? input.view_range.map(Number) : [];
      return oneLine(input.file_path) + (from === undefined ? '' : `, lines ${from}–${to && to > 0 ? to : 'end'}`);
    },
  },
  schema: ReadInput,
  changes: false,

  async execute(input, context) {
    const [first = 1, last = 0] = input.view_range ?? [];
    if (first < 1) return failed('view_range counts lines from 1; its first line must be 1 or more.');
    if (last > 0 && last < first) return failed('view_range ends before it begins; give [first line, last line].');
    const range = { first, last, asked: input.view_range !== undefined };
    const sandbox = await context.sandbox();
    const file = await readStored(sandbox, context, input.file_path, WHOLE_CAP);
    const shown = await show(sandbox, context, input.file_path, file, range);
    return { sandbox: sandbox.id, realPath: file.realPath, ...shown };
  },
};

async function show(sandbox: Sandbox, context: Acting, path: string, file: StoredFile, range: Range): Promise<Outcome> {
  const media = knownMedia(file.bytes);
  if (isShowable(media)) return await readMedia(sandbox, context, path, file, media);
  const hint = context.desk.encoding(file.realPath);
  if (file.more) return await readLarge(sandbox, context, path, file.bytes, range, hint);
  const fileSha256 = sha256(file.bytes);
  const text = media ? null : readText(file.bytes, hint);
  if (!text) return { ...notShown(path, media ?? BINARY, file.bytes.length), fileSha256 };
  return { ...ok(shownLines(path, text.text, file.bytes.length, range, encodingNotes(text))), fileSha256 };
}

async function readMedia(
  sandbox: Sandbox,
  context: Acting,
  path: string,
  start: StoredFile,
  media: Showable,
): Promise<Outcome> {
  const cap = MEDIA_CAPS[media.block];
  const file = start.more ? await readStored(sandbox, context, path, cap) : start;
  if (file.more || file.bytes.length > cap) return notShown(path, media, await sizeOf(sandbox, context, path));
  return { ...showMedia(path, media, file.bytes), fileSha256: sha256(file.bytes) };
}
