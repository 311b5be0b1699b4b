import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { mint } from '../../src/protocol/ids.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { type StdioTransport, stdioConnector } from '../../src/tools/mcp/stdio.ts';
import { MCP_STDIO_SERVER } from '../support/mcp-stdio-server.ts';

/** A client of the SDK's own, connected to a server in a sandbox. */
export interface Connected {
  client: Client;
  transport: StdioTransport;
  /** Calls a tool; the text it answers. */
  ask(tool: string, input?: object): Promise<string>;
}

/** The tests' own server, given to the program as its text. */
export const testServer = (...args: string[]) => ({
  type: 'stdio' as const,
  name: 'tester',
  command: 'node',
  args: ['-e', MCP_STDIO_SERVER, '--', ...args],
});

export async function connectTo(
  sandbox: Sandbox,
  server: Parameters<ReturnType<typeof stdioConnector>['open']>[0] = testServer(),
): Promise<Connected> {
  const purpose = {
    session: mint.session(),
    thread: mint.thread(),
    signal: new AbortController().signal,
    sandbox: async () => sandbox,
  };
  const transport = (await stdioConnector().open(server, purpose)) as StdioTransport;
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  const ask = async (name: string, input: object = {}) => {
    const { content } = await client.callTool({ name, arguments: { ...input } });
    return (content as { text: string }[]).map(({ text }) => text).join('');
  };
  return { client, transport, ask };
}
