import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

export interface ProtectedMcpOptions {
  /** True for the bearer tokens it takes. */
  accepts(token: string | undefined): boolean;
  /** Of its authorization server; absent: it names none. */
  issuer?: string;
}

/** A real MCP server over HTTP that answers nobody without a token, and says where one is to be had. */
export class ProtectedMcp {
  /** The bearer of each request, '' where there was none. */
  readonly bearers: string[] = [];
  readonly #server: Server;
  readonly #options: ProtectedMcpOptions;
  readonly #sessions = new Map<string, StreamableHTTPServerTransport>();

  private constructor(options: ProtectedMcpOptions) {
    this.#options = options;
    this.#server = createServer(async (request, response) => {
      const path = new URL(request.url ?? '/', this.origin).pathname;
      if (path === '/.well-known/oauth-protected-resource/mcp' && options.issuer) {
        response.writeHead(200, { 'content-type': 'application/json' });
        return response.end(JSON.stringify({ resource: this.url, authorization_servers: [options.issuer] }));
      }
      if (path !== '/mcp') return response.writeHead(404).end();
      const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
      this.bearers.push(bearer ?? '');
      if (!this.#options.accepts(bearer)) {
        const metadata = `${this.origin}/.well-known/oauth-protected-resource/mcp`;
        const where = options.issuer ? `, resource_metadata="${metadata}"` : '';
        return response.writeHead(401, { 'www-authenticate': `Bearer realm="test"${where}` }).end();
      }
      const known = this.#sessions.get(String(request.headers['mcp-session-id'] ?? ''));
      await (known ?? (await this.#open())).handleRequest(request, response);
    });
  }

  static async open(options: ProtectedMcpOptions): Promise<ProtectedMcp> {
    const server = new ProtectedMcp(options);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return `${this.origin}/mcp`;
  }

  /** Sessions that no client has ended. */
  get open(): number {
    return this.#sessions.size;
  }

  async #open(): Promise<StreamableHTTPServerTransport> {
    const server = new McpServer({ name: 'weather', version: '1.0.0' });
    server.registerTool(
      'forecast',
      { description: 'Says how the weather will be in a town.', inputSchema: { town: z.string() } },
      async ({ town }) => ({ content: [{ type: 'text', text: `Sunshine over ${town}, 23 degrees.` }] }),
    );
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => void this.#sessions.set(id, transport),
      onsessionclosed: (id) => void this.#sessions.delete(id),
    });
    await server.connect(transport);
    return transport;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
