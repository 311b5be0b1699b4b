import type { Sandbox } from '../sandbox/sandbox.ts';
import { READ } from './file-scripts.ts';
import { type Answer, ask } from './files.ts';
import { binaryMedia, type Media, sizeWords } from './media.ts';
import { failed, ok } from './outcomes.ts';
import { inputSchema, ReadInput } from './schemas.ts';
import { oneLine, type Tool } from './tool.ts';
import type { Outcome, ToolContext } from './tools.ts';

/** Bytes of text the model gets at once. */
export const READ_CAP = 256 * 1024;
/** Bytes: with base64's third on top it stays below the API's 5 MB for an image. */
const IMAGE_CAP = 3_500_000;

export const read: Tool<typeof ReadInput> = {
  spec: {
    name: 'read',
    description: `Reads a text file of the workspace, or an image. At most ${READ_CAP / 1024} KiB come back at once; view_range gives any lines of a larger file.`,
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
    const sandbox = await context.sandbox();
    const lines = last > 0 ? last - first + 1 : 0;
    const answer = await readBytes(sandbox, context, input.file_path, { first, lines, cap: READ_CAP });
    const size = Number(answer.fields[0]);
    const more = { sandbox: sandbox.id, realPath: answer.fields[2] ?? input.file_path };
    const media = first === 1 ? binaryMedia(answer.stdout) : undefined;
    if (media) return await binaryOutcome(sandbox, context, input.file_path, media, size, more);
    return { ...textOutcome(answer, input.file_path, first, input.view_range !== undefined), ...more };
  },
};

/** Reads a stretch of a file. Answer fields: size, number of line breaks (0 if not counted), real path. */
export async function readBytes(
  sandbox: Sandbox,
  context: ToolContext,
  path: string,
  part: { first: number; lines: number; cap: number; own?: boolean },
): Promise<Answer> {
  return await ask(sandbox, context, READ, {
    path,
    args: [String(part.first), String(part.lines), String(part.cap)],
    fields: 3,
    maxBytes: part.cap * 2,
    ...(part.own === undefined ? {} : { own: part.own }),
  });
}

async function binaryOutcome(
  sandbox: Sandbox,
  context: ToolContext,
  path: string,
  media: Media,
  size: number,
  more: Partial<Outcome>,
): Promise<Outcome> {
  if (!media.image)
    return failed(
      `${path} is ${media.name} of ${sizeWords(size)}, not text, so it is not shown. Use bash with a program that understands it.`,
      more,
    );
  if (size > IMAGE_CAP)
    return failed(
      `${path} is ${media.name} of ${sizeWords(size)}; images over ${sizeWords(IMAGE_CAP)} can't be shown.`,
      more,
    );
  const whole = await readBytes(sandbox, context, path, { first: 1, lines: 0, cap: IMAGE_CAP, own: false });
  const data = Buffer.from(whole.stdout).toString('base64');
  return ok([{ type: 'image', source: { type: 'base64', media_type: media.media_type, data } }], more);
}

function textOutcome(answer: Answer, path: string, first: number, ranged: boolean): Outcome {
  const [size = 0, breaks = 0] = answer.fields.slice(0, 2).map(Number);
  if (size === 0) return ok(`${path} is empty.`);
  if (answer.stdout.length === 0)
    return ok(`${path} has no line ${first}: it has ${breaks === 0 ? 'one line' : `${breaks} lines`}.`);
  const { text, note } = decode(answer.stdout);
  const cut = answer.stdout.length >= READ_CAP;
  // Cut at a line's end, so that the next view_range can start with a whole line.
  const lastBreak = text.lastIndexOf('\n');
  const shown = cut && lastBreak > 0 ? text.slice(0, lastBreak + 1) : text;
  const notes = [note];
  if (cut) {
    const next = first + shown.split('\n').length - 1;
    notes.push(
      lastBreak > 0
        ? `This is ${sizeWords(answer.stdout.length)} of ${sizeWords(size)}${breaks > 0 ? `, ${breaks} lines` : ''}. Go on with view_range [${next}, 0].`
        : `This is ${sizeWords(answer.stdout.length)} of ${sizeWords(size)}, all in one line. Use bash to cut out what you need.`,
    );
  } else if (ranged && breaks > 0) {
    notes.push(`The file has ${breaks} lines.`);
  }
  const said = notes.filter((line) => line !== '').map((line) => `[${line}]`);
  return ok(said.length > 0 ? `${shown}${shown.endsWith('\n') ? '' : '\n'}${said.join('\n')}` : shown);
}

/** Bytes as text: UTF-8, or, where that can't be, Latin-1, which shows every byte as one character. */
export function decode(bytes: Uint8Array): { text: string; note: string } {
  try {
    // A character cut in two at the end of a stretch is no reason to call the file anything but UTF-8.
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true }), note: '' };
  } catch {
    return {
      text: Buffer.from(bytes).toString('latin1'),
      note: 'This file is not valid UTF-8; it is shown as Latin-1, one character per byte.',
    };
  }
}
