import { randomUUID } from 'node:crypto';
import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CallToolRequestSchema,
  type CallToolResult,
  isInitializeRequest,
  ListToolsRequestSchema,
  type Tool,
} from '@modelcontextprotocol/sdk/types.js';

/** What a tool of the test's server does. */
export type Act = (
  input: Record<string, unknown>,
  call: { signal: AbortSignal; progress(done: number, total: number, message: string): Promise<void> },
) => Promise<CallToolResult> | CallToolResult;

export interface ServedTool extends Partial<Omit<Tool, 'name'>> {
  act?: Act;
}

/** A request as the server saw it. */
export interface SeenRequest {
  method: string;
  path: string;
  authorization: string | undefined;
  /** Of the JSON-RPC message. */
  rpc: string | undefined;
}

export const said = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] });

/** A real MCP server of the test's own on loopback, by the SDK: its tools, logins and accidents as the test wants them. */
export class TestMcpServer {
  readonly seen: SeenRequest[] = [];
  readonly calls: { tool: string; input: unknown }[] = [];
  tools: Record<string, ServedTool>;
  /** Bearer tokens that are let in. Absent: everybody is. */
  letsIn: Set<string> | undefined;
  /** Every request is answered with this redirect. */
  redirect: { status: number; location: string } | undefined;
  /** Takes requests and never answers. */
  silent = false;
  /** Knows only the older transport. */
  readonly older: boolean;
  #http: HttpServer | undefined;
  #port = 0;
  readonly #sessions = new Map<
    string,
    { server: Server; transport: StreamableHTTPServerTransport | SSEServerTransport }
  >();

  private constructor(tools: Record<string, ServedTool>, older: boolean) {
    this.tools = tools;
    this.older = older;
  }

  static async start(tools: Record<string, ServedTool>, options: { older?: boolean } = {}): Promise<TestMcpServer> {
    const server = new TestMcpServer(tools, options.older ?? false);
    await server.up();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/mcp`;
  }

  /** Listens, where it listened before. */
  async up(): Promise<void> {
    const http = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
    this.#http = http;
    await new Promise<void>((resolve, reject) => {
      http.once('error', reject);
      http.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (http.address() as AddressInfo).port;
  }

  /** Dies: every connection breaks, and nobody listens any more. */
  async down(): Promise<void> {
    const http = this.#http;
    this.#http = undefined;
    this.#sessions.clear();
    await new Promise<void>((resolve) => {
      if (!http) return resolve();
      http.close(() => resolve());
      http.closeAllConnections();
    });
  }

  /** Forgets the sessions it gave, as one does that was started anew. */
  forget(): void {
    this.#sessions.clear();
  }

  /** Tells every client that the list of tools is another one now. */
  async changed(): Promise<void> {
    for (const { server } of this.#sessions.values()) await server.sendToolListChanged();
  }

  /** How often a JSON-RPC method was asked for. */
  asked(rpc: string): number {
    return this.seen.filter((one) => one.rpc === rpc).length;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const body: unknown = text ? JSON.parse(text) : undefined;
    const { authorization } = request.headers;
    const { pathname, searchParams } = new URL(request.url ?? '/', this.url);
    const rpc = typeof body === 'object' && body !== null && 'method' in body ? String(body.method) : undefined;
    this.seen.push({ method: request.method ?? '', path: pathname, authorization, rpc });
    if (this.silent) return;
    if (this.redirect) {
      response.writeHead(this.redirect.status, { location: this.redirect.location }).end();
      return;
    }
    if (this.letsIn && !this.letsIn.has(authorization?.replace(/^Bearer /, '') ?? '')) {
      response.writeHead(401, { 'www-authenticate': 'Bearer' }).end('who are you?');
      return;
    }
    if (this.older) return await this.#serveOlder(request, response, body, searchParams.get('sessionId'));
    const id = request.headers['mcp-session-id'];
    const known = typeof id === 'string' ? this.#sessions.get(id)?.transport : undefined;
    if (known instanceof StreamableHTTPServerTransport) return await known.handleRequest(request, response, body);
    if (id !== undefined || !isInitializeRequest(body)) return void response.writeHead(404).end('no such session');
    const server = this.#server();
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (session) => void this.#sessions.set(session, { server, transport }),
    });
    await server.connect(transport as Parameters<Server['connect']>[0]);
    await transport.handleRequest(request, response, body);
  }

  async #serveOlder(request: IncomingMessage, response: ServerResponse, body: unknown, id: string | null) {
    if (request.method === 'GET') {
      const transport = new SSEServerTransport('/messages', response);
      const server = this.#server();
      this.#sessions.set(transport.sessionId, { server, transport });
      await server.connect(transport);
      return;
    }
    const known = id === null ? undefined : this.#sessions.get(id)?.transport;
    if (known instanceof SSEServerTransport) await known.handlePostMessage(request, response, body);
    else response.writeHead(404).end();
  }

  #server(): Server {
    const server = new Server({ name: 'test', version: '1.2.3' }, { capabilities: { tools: { listChanged: true } } });
    server.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: Object.entries(this.tools).map(([name, { act: _, ...tool }]) => ({
        name,
        description: `Does ${name}.`,
        inputSchema: { type: 'object' as const },
        ...tool,
      })),
    }));
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
      this.calls.push({ tool: params.name, input: params.arguments });
      const { progressToken } = params._meta ?? {};
      const progress = async (done: number, total: number, message: string) => {
        if (progressToken === undefined) return;
        const told = { progressToken, progress: done, total, message };
        await extra.sendNotification({ method: 'notifications/progress', params: told });
      };
      const act = this.tools[params.name]?.act ?? (() => said('done'));
      return await act(params.arguments ?? {}, { signal: extra.signal, progress });
    });
    return server;
  }
}
