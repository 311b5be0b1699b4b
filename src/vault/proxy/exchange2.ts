import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import { pipeline } from 'node:stream/promises';
import { counter, orRefused } from './exchange.ts';
import type { Fields } from './fields.ts';
import { parseAuthority, sameTarget, type Target } from './hosts.ts';
import type { Incoming, Injection } from './injection.ts';
import { Refused } from './refused.ts';
import { told } from './told.ts';
import type { Visit } from './visit.ts';

/** Whether a request's `:authority` (and `Host`, if it has one) is the host its connection was opened to. */
export function isFor(headers: IncomingHttpHeaders, target: Target): boolean {
  const names = [headers[':authority'], headers.host].filter((name) => name !== undefined);
  return (
    names.length > 0 &&
    headers[':scheme'] === 'https' &&
    names.every((name) => {
      const named = parseAuthority(name, 'https');
      return named !== undefined && sameTarget(named, target);
    })
  );
}

/** Sends one HTTP/2 request on over `session` and its answer back. Never throws. */
export async function exchange2(
  visit: Visit,
  session: () => Promise<ClientHttp2Session>,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
): Promise<void> {
  let sent: ClientHttp2Stream | undefined;
  try {
    const path = headers[':path'] ?? '/';
    const injection = await visit.injection();
    const outgoing = injection.outgoing(path, fieldsOf(headers));
    const changed = outgoing.changes ? ['content-length'] : [];
    const upstream = await session();
    if (stream.closed || stream.destroyed) throw new Refused('upstream', 'the request was called off');
    sent = upstream.request(
      {
        ':method': visit.method,
        ':path': path,
        ':scheme': 'https',
        ':authority': headers[':authority'] ?? headers.host ?? '',
        ...headersOf(outgoing.fields, 'host', ...changed),
      },
      { endStream: stream.endAfterHeaders },
    );
    stream.on('aborted', () => sent?.close(constants.NGHTTP2_CANCEL));
    const answered = answerOf(sent);
    const count = counter((bytes) => (visit.bytesOut += bytes));
    const answer = await (stream.endAfterHeaders
      ? answered
      : orRefused(answered, pipeline([stream, ...outgoing.body, count, sent])));
    visit.status = Number(answer[':status']);
    const incoming = injection.incoming(fieldsOf(answer));
    await answerWith(visit, injection, { sent, stream, answer, incoming });
    visit.allowed();
  } catch (error) {
    sent?.close(constants.NGHTTP2_CANCEL);
    tell2(stream, visit.ended(error));
  }
}

export function tell2(stream: ServerHttp2Stream, refused: Refused): void {
  // One that was reset is closed some time before it is destroyed, and takes nothing any more.
  if (stream.destroyed || stream.closed) return;
  if (stream.headersSent) {
    stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    return;
  }
  stream.respond({
    ':status': refused.status,
    'content-type': 'text/plain; charset=utf-8',
    'x-drover-refused': refused.reason,
  });
  stream.end(told(refused));
}

function answerOf(sent: ClientHttp2Stream): Promise<IncomingHttpHeaders & { ':status'?: number }> {
  return new Promise((resolve, reject) => {
    sent.on('response', resolve);
    sent.on('error', reject);
    sent.on('close', () => reject(new Refused('upstream', 'the host closed the request without an answer')));
  });
}

async function answerWith(
  visit: Visit,
  injection: Injection,
  {
    sent,
    stream,
    answer,
    incoming,
  }: { sent: ClientHttp2Stream; stream: ServerHttp2Stream; answer: IncomingHttpHeaders; incoming: Incoming },
): Promise<void> {
  let trailers: OutgoingHttpHeaders | undefined;
  sent.on('trailers', (headers) => {
    trailers = headersOf(injection.cleaned(fieldsOf(headers)));
  });
  stream.on('wantTrailers', () => {
    try {
      stream.sendTrailers(trailers ?? {});
    } catch {
      // Fields that only the other side's library lets through: what they are the end of can't be ended rightly.
      stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    }
  });
  const changed = incoming.body.length > 0 ? ['content-length'] : [];
  stream.respond(
    { ':status': Number(answer[':status']), ...headersOf(incoming.fields, ...changed) },
    { waitForTrailers: true },
  );
  await pipeline([sent, counter((bytes) => (visit.bytesIn += bytes)), ...incoming.body, stream]);
}

function fieldsOf(headers: IncomingHttpHeaders): Fields {
  return Object.entries(headers).flatMap(([name, value]) =>
    name.startsWith(':') || value === undefined ? [] : [value].flat().map((one): [string, string] => [name, one]),
  );
}

/** Fields an HTTP/2 peer would refuse are left out. */
const NOT_HERE = [
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'http2-settings'],
  'proxy-authorization',
];

function headersOf(fields: Fields, ...leftOut: string[]): OutgoingHttpHeaders {
  const headers: Record<string, string | string[]> = {};
  for (const [mixed, value] of fields) {
    const name = mixed.toLowerCase();
    if (NOT_HERE.includes(name) || leftOut.includes(name) || (name === 'te' && value !== 'trailers')) continue;
    const there = headers[name];
    headers[name] = there === undefined ? value : [there, value].flat();
  }
  return headers;
}
