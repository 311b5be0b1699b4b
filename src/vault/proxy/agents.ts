import { Agent, type ClientRequestArgs } from 'node:http';
import { Duplex } from 'node:stream';

/** Connections of HTTP/1 requests, made by `dial` and kept alive between requests to the same place. */
export class DialingAgent extends Agent {
  readonly #dial: (options: ClientRequestArgs) => Promise<Duplex>;

  /** `most`: connections to one place at the same time. */
  constructor(dial: (options: ClientRequestArgs) => Promise<Duplex>, most = Number.POSITIVE_INFINITY) {
    super({ keepAlive: true, maxSockets: most });
    this.#dial = dial;
  }

  override createConnection(
    options: ClientRequestArgs,
    connected?: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    this.#dial(options).then(
      (stream) => connected?.(null, stream),
      // Beside an error the stream is not looked at.
      (error: unknown) => connected?.(error instanceof Error ? error : new Error(String(error)), new Duplex()),
    );
  }
}
