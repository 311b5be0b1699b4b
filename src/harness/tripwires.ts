import type { EventId, ThreadId } from '../protocol/ids.ts';
import type { McpServer } from '../protocol/mcp.ts';
import { type Draft, draft } from '../protocol/record.ts';
import type { SecretGuard } from '../vault/guard.ts';
import type { Awake } from './awake.ts';

/*
 * A placeholder belongs into variables and requests, never into a file: where one is written, somebody tries to keep it
 * or to carry it on. That pauses the session until a person has looked.
 */

/**
 * Questions about the calls of a reply that would write a placeholder into a file, or send one to an MCP server outside
 * the sandbox, where nothing puts a value in its place; none of the calls has run yet.
 */
export function tripwires(
  guard: SecretGuard | undefined,
  servers: readonly McpServer[],
  reply: readonly Draft[],
): Draft[] {
  return reply.flatMap(({ event, thread }) => {
    if (event.type === 'agent.mcp_tool_use' && 'input' in event) {
      const server = servers.find(({ name }) => name === event.mcp_server_name);
      if (server?.type !== 'url' || !guard?.holdsPlaceholder(event.input)) return [];
      const what = `${event.name} would send a credential’s placeholder to the MCP server ${server.name} (${new URL(server.url).host}), where it does not belong. It has not run yet; the real value is not in it.`;
      return [question(what, event.id, thread)];
    }
    if (event.type !== 'agent.tool_use' || !('input' in event)) return [];
    if (!guard?.writesPlaceholder(event.name, event.input)) return [];
    const path = typeof event.input.file_path === 'string' ? event.input.file_path : 'a file';
    return [
      question(
        `${event.name} would write a credential’s placeholder into ${path}. It has not run yet; the real value is not in it.`,
        event.id,
        thread,
      ),
    ];
  });
}

/** Questions about the files that a checkpoint says have changed. One that can't be read now is looked at no more. */
export async function watchCheckpoints(awake: Awake, drafts: readonly Draft[]): Promise<void> {
  const { guard } = awake.deps;
  if (!guard) return;
  for (const { event } of drafts) {
    if (event.type !== 'drover.checkpoint' || !('files' in event)) continue;
    const changed = event.files.filter(({ change }) => change !== 'deleted').map(({ path }) => path);
    const path = await guard.fileWithPlaceholder(awake.owner, changed);
    if (path === null || asked(awake, path)) continue;
    const call = event.tool_use_ids.length === 1 ? (event.tool_use_ids[0] ?? null) : null;
    const thread = call ? awake.state.calls.get(call)?.thread : undefined;
    await awake.append([question(`${told(path)} The real value is not in it.`, call, thread)]);
  }
}

const told = (path: string): string =>
  `There is a credential’s placeholder in ${path} now, which the session’s calls changed.`;

/** A person who has looked at a file need not look again at each change of it. */
const asked = (awake: Awake, path: string): boolean =>
  awake.state.questions.some((one) => one.kind === 'canary' && one.why.startsWith(told(path)));

const question = (what: string, call: EventId | null, thread: ThreadId | undefined): Draft =>
  draft(
    'drover.question',
    { kind: 'canary', text: `${what} Allow lets the session go on, Deny stops it.`, call },
    thread ? { thread } : {},
  );
