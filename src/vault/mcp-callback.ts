import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const PAGE = `<!doctype html><meta charset="utf-8"><title>Drover</title>
<style>body{font:16px system-ui;margin:20vh auto;max-width:30em;padding:0 1em;color-scheme:light dark}</style>`;

/** Where a browser comes back to from a login: a port of this machine's loopback, for as long as one login takes. */
export class Callback {
  readonly #server: Server;
  #awaited: { state: string; came: (params: URLSearchParams) => void } | undefined;

  private constructor() {
    this.#server = createServer((request, response) => {
      const url = new URL(request.url ?? '/', 'http://127.0.0.1');
      const params = url.searchParams;
      const awaited = this.#awaited;
      // Nobody else knows the state, so nobody else can end the login.
      const ours = request.method === 'GET' && url.pathname === '/callback' && params.get('state') === awaited?.state;
      response.writeHead(ours ? 200 : 404, { 'content-type': 'text/html; charset=utf-8', connection: 'close' });
      if (!ours || !awaited) return void response.end(`${PAGE}<p>There is nothing here.`);
      const done = params.has('code') ? 'You are logged in.' : 'You were not logged in.';
      response.end(`${PAGE}<h1>${done}</h1><p>Close this page and go back to VS Code.`);
      awaited.came(params);
    });
  }

  static async open(): Promise<Callback> {
    const callback = new Callback();
    await new Promise<void>((resolve, reject) => {
      callback.#server.once('error', reject).listen(0, '127.0.0.1', resolve);
    });
    return callback;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/callback`;
  }

  /** What the browser brought back for this state. Rejects when `signal` is aborted. */
  async wait(state: string, signal: AbortSignal): Promise<URLSearchParams> {
    const { promise, resolve, reject } = Promise.withResolvers<URLSearchParams>();
    this.#awaited = { state, came: resolve };
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    try {
      return await promise;
    } finally {
      this.#awaited = undefined;
      signal.removeEventListener('abort', stop);
    }
  }

  /** The page that is being shown gets a moment to come whole. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    await Promise.race([closed, sleep(1000, undefined, { ref: false })]);
    this.#server.closeAllConnections();
  }
}
