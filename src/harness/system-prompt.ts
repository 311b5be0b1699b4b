import type { SessionState, ThreadState } from '../session/state.ts';

/**
 * What the model is told of where it is. The same text for the whole life of a thread, so that the cache holds.
 * The agent's own system prompt comes first.
 */
export function systemPrompt(state: SessionState, thread: ThreadState): string {
  const parts = [
    thread.agent.system?.trim() || `You are ${thread.agent.name}, a software engineering agent.`,
    facts(state),
  ];
  if (thread.parent) {
    parts.push(
      `You are the subagent "${thread.agentName}". You were given one task by another agent, in the first message; your last message is what it gets back, so let it stand on its own.`,
    );
  }
  return parts.join('\n\n');
}

const facts = (state: SessionState): string =>
  [
    "You work through Drover on a person's own machine. Tools run in a sandbox that holds the workspace folder; relative paths start there.",
    `The sandbox comes from the environment "${state.environment.name}" ${lifetime(state)} It can die: then a call's result says "lost", and the next call gets a fresh one in which only the workspace folder is as it was.`,
    'A result says how a call ended. "unknown" and "lost" mean that it may have happened: check before you do it again. A denied call is final until the user speaks.',
    'The session log keeps everything; where an old result is left out of your view, its stub names the event that get_events gives back.',
  ].join('\n');

const lifetime = ({ environment }: SessionState): string =>
  environment.lifetime === 'call'
    ? 'and every call has a fresh one of its own: nothing but the workspace folder is kept from one call to the next.'
    : 'and is made at the first call that needs it.';
