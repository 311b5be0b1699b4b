import { z } from 'zod';
import type { AgentSnapshot } from '../protocol/drover-event.ts';
import { failed } from './outcomes.ts';
import { inputSchema } from './schemas.ts';
import { oneLine, type Tool } from './tool.ts';

const CreateAgentInput = z.object({
  agent: z.string().min(1).describe('Name of the agent to start. Default: another of yourself.').optional(),
  title: z.string().min(1).max(80).describe('A short name for it, shown to the person.'),
  task: z.string().min(1).describe('What it should do. It knows nothing of this conversation: say all it needs.'),
});

/**
 * The tool that starts a child thread. Only its description is here: the harness itself makes the thread,
 * since a thread is part of the session and not of any sandbox.
 */
export function createAgentTool(roster: readonly AgentSnapshot[]): Tool<typeof CreateAgentInput> {
  const names = roster.map((agent) => agent.name);
  return {
    spec: {
      name: 'create_agent',
      description: `Starts a subagent with a context of its own and a task, in the same workspace and sandbox. You get its last message as the result. Several calls in one reply work side by side. ${rosterWords(roster)}`,
      input_schema: inputSchema(CreateAgentInput),
      idempotent: false,
      sandboxed: false,
      summary: (input) => `${oneLine(input.title, 80)}: ${oneLine(input.task, 120)}`,
    },
    schema: CreateAgentInput.refine((input) => input.agent === undefined || names.includes(input.agent), {
      path: ['agent'],
      error:
        names.length > 0
          ? `must be one of ${names.join(', ')}, or absent`
          : 'must be absent: no other agent may be started',
    }),
    changes: false,
    execute: () =>
      Promise.resolve(failed('create_agent is carried out by the harness, not by the toolbox; nothing was started.')),
  };
}

function rosterWords(roster: readonly AgentSnapshot[]): string {
  if (roster.length === 0) return 'It is another of yourself.';
  const lines = roster.map((agent) => `- ${agent.name}${agent.description ? `: ${oneLine(agent.description)}` : ''}`);
  return `Without "agent" it is another of yourself; else one of:\n${lines.join('\n')}`;
}
