import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { mint } from '../../../src/protocol/ids.ts';
import { NotSent, type StdioTransport, stdioConnector } from '../../../src/tools/mcp/stdio.ts';
import { MCP_STDIO_SERVER } from '../../support/mcp-stdio-server.ts';
import { ProcessSandbox } from '../../support/process-sandbox.ts';
import { makeFolder } from '../../support/temp.ts';

/** What a real sandbox adds to it is in test/sandbox/living.test.ts. */
describe('an MCP server that is spoken to line by line', () => {
  let sandbox: ProcessSandbox;
  beforeEach(async () => {
    sandbox = new ProcessSandbox(mint.sandbox(), await makeFolder('drover-mcp-'));
  });
  afterEach(() => {
    sandbox.kill();
  });

  async function open(command: string, args: string[], signal = new AbortController().signal) {
    const purpose = { session: mint.session(), thread: mint.thread(), signal, sandbox: async () => sandbox };
    const server = { type: 'stdio' as const, name: 'tester', command, args };
    const transport = (await stdioConnector().open(server, purpose)) as StdioTransport;
    const client = new Client({ name: 'test', version: '1' });
    return { transport, client };
  }
  const real = () => open('node', ['-e', MCP_STDIO_SERVER]);

  it('may print what is no message, before and between messages', async () => {
    const { client, transport } = await real();
    await client.connect(transport);
    expect((await client.listTools()).tools.length).toBeGreaterThan(3);
    await client.close();
  });

  it('that says no word of the protocol is quoted when it has ended', async () => {
    const { client, transport } = await open('sh', ['-c', 'echo usage: server --port N; echo no config >&2; exit 2']);
    await expect(client.connect(transport)).rejects.toThrow();
    expect(transport.whyClosed).toBe(
      'The MCP server “tester” ended before it said anything, with exit code 2. Its last words:\nno config\nusage: server --port N',
    );
    await expect(transport.send({ jsonrpc: '2.0', method: 'ping', id: 1 })).rejects.toThrow(NotSent);
  });

  it('that sends a message beyond all measure is ended and says so; a large one is taken', async () => {
    const { client, transport } = await real();
    await client.connect(transport);
    const call = (bytes: number) => client.callTool({ name: 'large', arguments: { bytes } });
    expect(JSON.stringify(await call(15 << 20)).length).toBeGreaterThan(15 << 20);
    await expect(call(17 << 20)).rejects.toThrow(/closed/);
    expect(transport.whyClosed).toBe(
      'The MCP server “tester” sent a message of more than 16 MiB, which is not taken, and was ended.',
    );
  });

  it('that dies under a call leaves no one waiting, and who asks later knows that nothing was sent', async () => {
    const { client, transport } = await real();
    await client.connect(transport);
    const waits = client.callTool({ name: 'wait', arguments: {} });
    await client.callTool({ name: 'environment', arguments: {} });
    sandbox.kill();
    await expect(waits).rejects.toThrow(/closed/);
    expect(transport.whyClosed).toBe('The MCP server “tester” is gone: the sandbox was killed.');
    const late = transport.send({ jsonrpc: '2.0', method: 'tools/call', id: 9, params: { name: 'wait' } });
    await expect(late).rejects.toThrow(NotSent);
  });

  it('is not left running when nobody waits for it any more', async () => {
    const controller = new AbortController();
    controller.abort(new Error('called off'));
    await expect(open('node', ['-e', MCP_STDIO_SERVER], controller.signal)).rejects.toThrow('called off');
  });
});
