import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { text } from '../../protocol/content.ts';
import { messageOf } from '../../protocol/errors.ts';
import type { OutcomeKind } from '../../protocol/record.ts';
import type { Outcome } from '../tools.ts';

/** Errors of a connection that was never made: nothing was sent. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'CERT_HAS_EXPIRED',
]);

const DOUBT = 'It may have happened, wholly or in part; check before you do it again.';

export interface Circumstances {
  signal: AbortSignal;
  /** ms after which a call that says nothing is given up. */
  silentMs: number;
  /** Why the connection has ended, if it has and that is known. */
  whyClosed: string | undefined;
}

/**
 * What an error means for a call that was sent to a server, honestly: only who has an answer knows what became of it.
 */
export function outcomeOfFailure(
  server: string,
  error: unknown,
  { signal, silentMs, whyClosed }: Circumstances,
): Outcome {
  if (signal.aborted)
    return said('unknown', 'Interrupted by the user; this call had been started and may have taken effect.');
  if (whyClosed !== undefined && !isAnswer(error)) return said('unknown', `${whyClosed} ${DOUBT}`);
  if (error instanceof McpError) {
    if (error.code === ErrorCode.RequestTimeout) {
      const words = `MCP server "${server}" did not answer in time (it was silent for ${Math.round(silentMs / 1000)} s, or took over an hour in all), and was asked to stop. ${DOUBT}`;
      return said('timed_out', words);
    }
    if (error.code === ErrorCode.ConnectionClosed)
      return said('unknown', `The connection to MCP server "${server}" ended before it had answered. ${DOUBT}`);
    return said('failed', `MCP server "${server}" refused the call: ${short(error.message)}`);
  }
  if (error instanceof StreamableHTTPError && (error.code ?? 0) >= 400 && (error.code ?? 0) < 500)
    return said('failed', `MCP server "${server}" refused the call: ${short(error.message)}`);
  if (NEVER_SENT.has(codeOf(error)))
    return said('failed', `MCP server "${server}" could not be reached, so the call did not run (${why(error)}).`);
  return said('unknown', `MCP server "${server}" gave no answer that could be read (${why(error)}). ${DOUBT}`);
}

const isAnswer = (error: unknown): boolean =>
  error instanceof McpError && error.code !== ErrorCode.ConnectionClosed && error.code !== ErrorCode.RequestTimeout;

const said = (kind: OutcomeKind, words: string): Outcome => ({ kind, content: [text(words)] });

/** `fetch` says what went wrong in the cause of its error. */
export function why(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const words =
    cause instanceof Error && messageOf(error) === 'fetch failed' ? cause.message || codeOf(error) : messageOf(error);
  return short(words);
}

function codeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return typeof cause === 'object' && cause !== null && 'code' in cause ? String(cause.code) : '';
}

/** A server's words may be a whole page. */
const short = (words: string): string => {
  const line = words.replaceAll(/\s+/g, ' ').trim();
  return line.length > 300 ? `${line.slice(0, 300).toWellFormed()}…` : line;
};
