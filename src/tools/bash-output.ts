import { isUtf8 } from 'node:buffer';
import { text } from '../protocol/content.ts';
import type { RunResult } from '../sandbox/sandbox.ts';
import { capText } from './cap.ts';
import { binaryMedia, type Media, sizeWords } from './media.ts';
import { terminalText } from './terminal-text.ts';
import type { Outcome } from './tools.ts';

/** Bytes the model gets; the whole is kept beside the log. */
const SHOWN = 100 * 1024;
/** Characters of a stream that are folded as a terminal would, half of them from its end: more takes seconds. */
const FOLDED = 4 * 1024 * 1024;
/** What a terminal would have drawn in colours; the panel shows it so. */
const COLOURED = 'text/x-ansi; charset=utf-8';

/** Words for the model: what was printed, how it ended, what was left out. */
export function bashOutcome(result: RunResult, timeoutMs: number): Outcome {
  const stdout = printed(result.stdout);
  const stderr = printed(result.stderr);
  // What shells say of the processes that were killed with them is no news.
  if (result.ended !== 'exited') stderr.text = stderr.text.replaceAll(/^(Terminated|Killed)\n/gm, '');
  const whole = joined(stdout.text, stderr.text);
  const capped = capText(whole, SHOWN);
  // What was passed over stood in the middle of its stream, and was cut together with the words about it.
  const removed = capped.removed > 0 ? capped.removed + stdout.passedOver + stderr.passedOver : 0;
  const shown = capped.text.replace(`[… ${capped.removed} bytes`, `[… ${removed} bytes`).trimEnd();
  const parts = shown === '' ? [] : [shown];
  if (result.cutBytes > 0)
    parts.push(
      `[The output was longer than could be kept: ${result.cutBytes} bytes in its middle are lost. Send it to a file to have it all.]`,
    );
  parts.push(ending(result, timeoutMs, whole.trim() === ''));
  const kept = wholeOf(result, stdout, stderr, whole, removed > 0);
  return {
    kind: kindOf(result),
    content: [text(parts.join('\n'))],
    exitCode: result.exitCode,
    durationMs: result.durationMs,
    ...(kept ? { whole: kept } : {}),
  };
}

/** What is kept beside the log: all of a long output, and the colours of any. */
function wholeOf(
  result: RunResult,
  stdout: Printed,
  stderr: Printed,
  shown: string,
  cut: boolean,
): Outcome['whole'] | undefined {
  if (stdout.media) return { media_type: stdout.media.media_type, bytes: result.stdout };
  const raw = joined(stdout.raw, stderr.raw);
  if (raw.includes('\u001b[')) return { media_type: COLOURED, bytes: new TextEncoder().encode(raw) };
  const passedOver = stdout.passedOver + stderr.passedOver > 0;
  if (!cut && !passedOver) return undefined;
  return { media_type: 'text/plain; charset=utf-8', bytes: new TextEncoder().encode(passedOver ? raw : shown) };
}

const joined = (stdout: string, stderr: string): string =>
  [stdout, stderr].filter((part) => part.trim() !== '').join(stdout.endsWith('\n') ? '' : '\n');

/** A stream as it came and as the model reads it. */
interface Printed {
  raw: string;
  text: string;
  /** Bytes in its middle that were not folded. */
  passedOver: number;
  media: Media | undefined;
}

/** Of binary data the model learns only that it is: the bytes would fill its context with noise. */
function printed(stream: Uint8Array): Printed {
  const media = binaryOutput(stream);
  if (media) {
    const words = `[${sizeWords(stream.byteLength)} of binary output, not shown. Give it to a program that understands it, or send it to a file.]\n`;
    return { raw: words, text: words, passedOver: 0, media };
  }
  const raw = new TextDecoder().decode(stream);
  if (raw.length <= FOLDED) return { raw, text: terminalText(raw), passedOver: 0, media };
  const [start, end] = [raw.slice(0, FOLDED / 2), raw.slice(-FOLDED / 2)];
  const passedOver = stream.byteLength - Buffer.byteLength(start) - Buffer.byteLength(end);
  const words = `\n[… ${passedOver} bytes left out …]\n`;
  return { raw, text: `${terminalText(start)}${words}${terminalText(end)}`, passedOver, media };
}

/** NULs alone are no proof: lists made with `-print0` have them too, and are text. */
const binaryOutput = (stream: Uint8Array): Media | undefined => (isUtf8(stream) ? undefined : binaryMedia(stream));

function kindOf(result: RunResult): Outcome['kind'] {
  if (result.ended !== 'exited') return result.ended;
  return result.exitCode === 0 ? 'ok' : 'failed';
}

function ending(result: RunResult, timeoutMs: number, silent: boolean): string {
  if (result.ended === 'timed_out')
    return `[Ended: it did not finish within ${timeoutMs / 1000} s, and everything it had started was killed. Give a larger timeout_ms, or run it in the background with its output sent to a file.]`;
  if (result.ended === 'lost')
    return '[Lost: what waited for the command inside the sandbox was killed, perhaps by the command itself, so nobody saw its end. It may have happened in part; look before you repeat it.]';
  if (result.ended === 'cancelled') return '[Ended: the call was cancelled, and everything it had started was killed.]';
  return silent ? `[No output. Exit code ${result.exitCode}.]` : `[Exit code ${result.exitCode}.]`;
}
