import { Agent, type ClientRequestArgs } from 'node:http';
import { Duplex } from 'node:stream';

/** Connections of HTTP/1 requests, made by `dial` and kept alive between requests to the same place. */
export class DialingAgent extends Agent {
  readonly #dial: (options: ClientRequestArgs) => Promise<Duplex>;
  #ended = false;

  /** `most`: connections to one place at the same time. */
  constructor(dial: (options: ClientRequestArgs) => Promise<Duplex>, most = Number.POSITIVE_INFINITY) {
    super({ keepAlive: true, maxSockets: most });
    this.#dial = dial;
  }

  override createConnection(
    options: ClientRequestArgs,
    connected?: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    // Beside an error the stream is not looked at.
    const failed = (error: unknown) =>
      connected?.(error instanceof Error ? error : new Error(String(error)), new Duplex());
    this.#dial(options).then((stream) => {
      if (!this.#ended) return connected?.(null, stream);
      // Nobody would ever end what comes into a pool after its end.
      stream.on('error', () => stream.destroy());
      stream.destroy();
      failed(new Error('the connection is not wanted any more'));
    }, failed);
  }

  override destroy(): void {
    this.#ended = true;
    super.destroy();
  }
}
