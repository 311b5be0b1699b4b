import type { ServerResponse } from 'node:http';
import { errorMessageOf } from './api-error.ts';
import type { Fault } from './faults.ts';
import { contentFrames, type Frame, type Message, openingFrames } from './frames.ts';

/** ms. */
export interface Delays {
  firstTokenMs: number;
  perChunkMs: number;
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

/** Sends a reply as server-sent events. A fault of the stream strikes when its byte has gone out. */
export async function sendStream(
  response: ServerResponse,
  message: Message,
  delays: Delays,
  fault: Fault | undefined,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  response.flushHeaders();
  const stream = new Stream(response, fault);
  for (const frame of openingFrames(message)) await stream.send(frame);
  await stream.wait(delays.firstTokenMs);
  for (const frame of contentFrames(message)) {
    if (frame.pause) await stream.wait(delays.perChunkMs);
    await stream.send(frame);
  }
  stream.end();
}

class Stream {
  readonly #response: ServerResponse;
  #fault: Fault | undefined;
  #sent = 0;
  #wake: (() => void) | undefined;

  constructor(response: ServerResponse, fault: Fault | undefined) {
    this.#response = response;
    this.#fault = fault;
    response.once('close', () => this.#wake?.());
  }

  get #closed(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  /** Passes `ms`, less if the client goes away. */
  async wait(ms: number): Promise<void> {
    if (ms <= 0 || this.#closed) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async send(frame: Frame): Promise<void> {
    const bytes = Buffer.from(`event: ${frame.event}\ndata: ${JSON.stringify(frame.data)}\n\n`);
    const fault = this.#fault;
    const breaksAt = fault && 'afterBytes' in fault ? fault.afterBytes : Number.POSITIVE_INFINITY;
    if (fault && this.#sent + bytes.length > breaksAt) await this.#strike(fault, bytes, breaksAt - this.#sent);
    else await this.#write(bytes);
  }

  end(): void {
    if (!this.#closed) this.#response.end();
  }

  /** `left`: bytes of this frame that still go out where the fault cuts a frame in two. */
  async #strike(fault: Fault, bytes: Buffer, left: number): Promise<void> {
    this.#fault = undefined;
    if (fault.kind === 'drop') {
      await this.#write(bytes.subarray(0, Math.max(left, 0)));
      this.#response.destroy();
    } else if (fault.kind === 'cut_stream') {
      this.#response.end();
    } else if (fault.kind === 'error_event') {
      const message = fault.message ?? errorMessageOf(fault.type === 'overloaded_error' ? 529 : 500);
      const data = JSON.stringify({ type: 'error', error: { type: fault.type, message } });
      await this.#write(Buffer.from(`event: error\ndata: ${data}\n\n`));
      this.#response.end();
    } else if (fault.kind === 'stall') {
      await this.wait(fault.ms);
      await this.#write(bytes);
    }
  }

  async #write(bytes: Buffer): Promise<void> {
    if (this.#closed || bytes.length === 0) return;
    this.#sent += bytes.length;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      this.#response.write(bytes, () => resolve());
    });
  }
}
