import { type Agent, request as httpRequest, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import { Readable, Transform, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { endToEnd, type Fields, fieldsOf, flat, valuesOf, without } from './fields.ts';
import { authority, parseAuthority, parseTarget, sameTarget, type Target } from './hosts.ts';
import type { Incoming, Outgoing } from './injection.ts';
import { Refused } from './refused.ts';
import { told } from './told.ts';
import type { Visit } from './visit.ts';

/** A body up to this size is looked through whole, so that its length can be told. Bytes. */
const WHOLE = 64 * 1024;

/**
 * Where an HTTP/1 request goes: its own URL if it is absolute, else the host its connection was opened to.
 * Undefined if the names in it do not agree: then nobody can say what a server would make of it. Undefined, too, for a URL
 * of https that comes without a tunnel: it would be sent on without TLS, and a value in it.
 */
export function destination(
  request: IncomingMessage,
  pinned: Target | undefined,
): { target: Target; path: string } | undefined {
  const url = request.url ?? '';
  const [host, ...more] = valuesOf(fieldsOf(request.rawHeaders), 'host');
  if (host === undefined || more.length > 0) return undefined;
  const absolute = /^[a-z]+:\/\//i.test(url) ? parseTarget(url) : undefined;
  const target = absolute?.target ?? pinned;
  const path = absolute?.path ?? (url.startsWith('/') || url === '*' ? url : undefined);
  if (!target || path === undefined) return undefined;
  if (!pinned && target.scheme === 'https') return undefined;
  if (pinned && !sameTarget(pinned, target)) return undefined;
  const named = parseAuthority(host, target.scheme);
  return named && sameTarget(named, target) ? { target, path } : undefined;
}

/** Sends one HTTP/1 request on and its answer back. Never throws: what went wrong is told to the client. */
export async function exchange(
  visit: Visit,
  path: string,
  agent: Agent,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  let answer: IncomingMessage | undefined;
  try {
    const injection = await visit.injection();
    const fields = endToEnd(fieldsOf(request.rawHeaders));
    const outgoing = injection.outgoing(path, fields);
    // It may have been waiting for a person's answer.
    if (response.destroyed) throw new Refused('upstream', 'whoever asked hung up before the request was sent');
    answer = await send(visit, path, agent, request, outgoing);
    visit.status = answer.statusCode ?? null;
    const incoming = injection.incoming(endToEnd(fieldsOf(answer.rawHeaders)), answer.statusMessage);
    await answerWith(visit, answer, incoming, response, request.method === 'HEAD');
    visit.allowed();
  } catch (error) {
    answer?.destroy();
    tell(response, visit.ended(error));
  }
}

/** The proxy's own answer, or an end in the middle of one that has begun. */
export function tell(response: ServerResponse, refused: Refused): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const body = told(refused);
  // The reason is said in any case: one that was tried before and could not be sent would still stand there.
  response.writeHead(refused.status, STATUS_CODES[refused.status] ?? '', {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'x-drover-refused': refused.reason,
    connection: 'close',
  });
  response.end(body);
}

async function send(
  visit: Visit,
  path: string,
  agent: Agent,
  request: IncomingMessage,
  outgoing: Outgoing,
): Promise<IncomingMessage> {
  const hasBody = request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length']) > 0;
  const body = hasBody ? await lengthened(request, outgoing) : undefined;
  const fields: Fields = [
    ['Host', authority(visit.target)],
    ...without(outgoing.fields, 'host', ...(body?.changed ? ['content-length'] : [])),
    ...(body?.length === undefined ? [] : [['Content-Length', String(body.length)] as const]),
    ...(body && body.length === undefined && (body.changed || request.headers['content-length'] === undefined)
      ? [['Transfer-Encoding', 'chunked'] as const]
      : []),
  ];
  const { host, port } = visit.target;
  const sent = httpRequest({ agent, host, port, method: request.method, path, headers: flat(fields) });
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    sent.on('response', resolve);
    sent.on('error', reject);
    sent.on('close', () => reject(new Refused('upstream', `${host} hung up without an answer`)));
    // Nobody waits any more: the client hung up. One that has no connection yet does not say that it was ended.
    request.on('error', (error) => {
      sent.destroy(error);
      reject(error);
    });
  });
  if (!body) {
    sent.end();
    return await answer.catch((error: unknown) => {
      // The host closed a connection that was kept alive just as this request was sent on it.
      if (!sent.reusedSocket || visit.status !== null || !isReset(error)) throw error;
      return send(visit, path, agent, request, outgoing);
    });
  }
  // An answer may come before the body has gone; a body that breaks off ends the request.
  const count = counter((bytes) => (visit.bytesOut += bytes));
  return await orRefused(answer, pipeline([body.stream, ...body.through, count, sent]));
}

const isReset = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ECONNRESET';

/** What a request is answered with, or why its body was stopped, which says more than that the request broke off. */
export async function orRefused<T>(answer: Promise<T>, body: Promise<void>): Promise<T> {
  const stopped = body.then(
    () => undefined,
    (error: unknown) => error,
  );
  try {
    return await answer;
  } catch (error) {
    const why = await stopped;
    throw why instanceof Refused ? why : error;
  }
}

/** The body as it will go out, and its length where it is known again after swapping. */
async function lengthened(request: IncomingMessage, outgoing: Outgoing) {
  const through = outgoing.body;
  const length = Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY);
  if (through.length === 0) return { stream: request, through: [], changed: false, length: undefined };
  if (length > WHOLE) return { stream: request, through, changed: outgoing.changes, length: undefined };
  const whole = await collect(request, through);
  return {
    stream: Readable.from([whole], { objectMode: false }),
    through: [],
    changed: true,
    length: whole.byteLength,
  };
}

async function answerWith(
  visit: Visit,
  answer: IncomingMessage,
  incoming: Incoming,
  response: ServerResponse,
  bodiless: boolean,
): Promise<void> {
  const count = counter((bytes) => (visit.bytesIn += bytes));
  const length = Number(answer.headers['content-length'] ?? Number.POSITIVE_INFINITY);
  const empty = bodiless || answer.statusCode === 204 || answer.statusCode === 304;
  const head = (fields: Fields) => response.writeHead(answer.statusCode ?? 502, incoming.reason, flat(fields));
  if (empty || incoming.body.length === 0) {
    head(incoming.fields);
    await pipeline([answer, count, response]);
  } else if (length <= WHOLE && !incoming.decoded) {
    const whole = await collect(answer, [count, ...incoming.body]);
    head([...without(incoming.fields, 'content-length'), ['Content-Length', String(whole.byteLength)]]);
    response.end(whole);
  } else {
    head(without(incoming.fields, 'content-length'));
    await pipeline([answer, count, ...incoming.body, response]);
  }
}

/** Counts bytes as they pass. */
export const counter = (on: (bytes: number) => void): Transform =>
  new Transform({
    transform(chunk: Buffer, _encoding, done) {
      on(chunk.byteLength);
      done(null, chunk);
    },
  });

async function collect(stream: Readable, through: readonly Transform[]): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const end = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  await pipeline([stream, ...through, end]);
  return Buffer.concat(chunks);
}
