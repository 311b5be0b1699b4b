import { text } from '../../src/protocol/content.ts';
import type { AgentSnapshot } from '../../src/protocol/drover-event.ts';
import { mint, type SessionId } from '../../src/protocol/ids.ts';
import { type Draft, draft, type LogRecord } from '../../src/protocol/record.ts';
import { fold, pendingApprovals } from '../../src/session/fold.ts';
import type { SessionState } from '../../src/session/state.ts';

/*
 * What the person does: starts the session, says something more while it works, allows what asks. All of it follows
 * from what they see in the log, so that somebody who comes back after a crash does what is still to be done.
 */

const TASK = '[rehearsal:crash-course] Leave your lines, whatever happens.';
const INTERJECTION = 'And tell me when you are done.';

const HELPER: AgentSnapshot = {
  name: 'Helper',
  model: 'drover-rehearsal',
  tools: [{ type: 'agent_toolset_20260401', configs: [{ name: 'bash', permission_policy: { type: 'always_ask' } }] }],
};

const AGENT: AgentSnapshot = {
  name: 'Runner',
  model: 'drover-rehearsal',
  tools: [{ type: 'agent_toolset_20260401', configs: [{ name: 'write', permission_policy: { type: 'always_ask' } }] }],
  multiagent: { type: 'coordinator', agents: ['Helper'] },
};

/** The first records of a session on this image. */
export function beginning(session: SessionId, image: string): Draft[] {
  const primary = mint.thread();
  const created = draft('drover.session_created', {
    session_id: session,
    primary_thread_id: primary,
    title: 'A course of crashes',
    agent: AGENT,
    roster: [HELPER],
    environment: {
      id: mint.environment(),
      type: 'environment',
      name: 'A small image',
      config: { type: 'image', image },
      created_at: '2026-01-01T00:00:00.000Z',
      updated_at: '2026-01-01T00:00:00.000Z',
      archived_at: null,
    },
    vault_ids: [],
    strategy: 'elide',
  });
  return [created, draft('user.message', { content: [text(TASK)] }, { thread: primary, queued: true })];
}

/** What the person still has to say, once the first command has been started. */
export function interjection(records: readonly LogRecord[]): Draft[] {
  const started = records.some(({ event }) => event.type === 'drover.tool_started');
  const messages = records.filter(({ event }) => event.type === 'user.message');
  if (!started || messages.length !== 1) return [];
  const { primary } = fold(records);
  return [draft('user.message', { content: [text(INTERJECTION)] }, { thread: primary, queued: true })];
}

/** An answer to the call that has asked longest, if one asks. */
export function answer(state: SessionState): Draft | undefined {
  const [call] = pendingApprovals(state);
  return call && draft('user.tool_confirmation', { tool_use_id: call.id, result: 'allow' }, { thread: call.thread });
}
