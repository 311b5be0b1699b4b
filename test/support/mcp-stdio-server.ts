/**
 * A real MCP server in one script, for whatever has Node: line by line, without any package. Its tools do what tests
 * want to see: `environment`, `fetch` (url), `read` and `write` (path), `children` (starts two that outlive a careless end, one in
 * a process group of its own), `large` (bytes), `wait` (never answers), `exit` (code).
 */
export const MCP_STDIO_SERVER = `
const { spawn } = require('node:child_process');
const { readFileSync, writeFileSync } = require('node:fs');
console.error('server ' + process.argv.slice(2).join(' '));
console.log('Welcome! This line is no message.');
const tools = ['environment', 'fetch', 'read', 'write', 'children', 'large', 'wait', 'exit'];
const text = (text) => ({ content: [{ type: 'text', text: String(text) }] });
const acts = {
  environment: () => text(JSON.stringify({ ...process.env, cwd: process.cwd(), user: process.getuid() })),
  fetch: async ({ url, headers }) => {
    try {
      const answer = await fetch(url, { headers });
      return text(answer.status + ' ' + (await answer.text()));
    } catch (error) { return text('failed ' + (error.cause?.message ?? error.message)); }
  },
  read: ({ path }) => text(readFileSync(path, 'utf8')),
  write: ({ path }) => { writeFileSync(path, 'by the server\\n'); return text('written'); },
  children: ({ seconds }) => {
    for (const detached of [false, true])
      spawn('sh', ['-c', 'trap "" HUP; exec sleep ' + seconds], { detached, stdio: 'inherit' }).unref();
    return text('started');
  },
  large: ({ bytes }) => text('x'.repeat(bytes)),
  wait: () => new Promise(() => {}),
  exit: ({ code }) => { console.error('exiting as told'); process.exit(code); },
};
const say = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
require('node:readline').createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize')
    say(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'test', version: '1' } });
  else if (method === 'tools/list')
    say(id, { tools: tools.map((name) => ({ name, inputSchema: { type: 'object' } })) });
  else if (method === 'tools/call') say(id, await acts[params.name](params.arguments ?? {}));
}).on('close', () => { if (!process.argv.includes('stubborn')) process.exit(0); });
if (process.argv.includes('stubborn')) { process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); }
`;
