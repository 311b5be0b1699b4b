import type { BetaManagedAgentsSessionEvent } from '@anthropic-ai/sdk/resources/beta/sessions/events';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { type AnyEvent, type EventType, eventProblem, isKnown, type KnownEvent } from '../../../src/protocol/event.ts';
import { EventId, mint, ThreadId } from '../../../src/protocol/ids.ts';
import { draft } from '../../../src/protocol/record.ts';

type PublicType = BetaManagedAgentsSessionEvent['type'];
type OwnType = Extract<EventType, `drover.${string}`>;

const at = '2026-11-30T12:00:00Z';

/** Events as the hosted service sends them, held to the SDK's own types. */
const hosted = [
  { id: 'sevt_1', type: 'user.message', content: [{ type: 'text', text: 'hi' }], processed_at: null },
  { id: 'sevt_2', type: 'user.interrupt', processed_at: at },
  {
    id: 'sevt_3',
    type: 'user.tool_confirmation',
    tool_use_id: 'sevt_5',
    result: 'deny',
    deny_message: 'no',
    processed_at: at,
  },
  { id: 'sevt_4', type: 'agent.message', content: [{ type: 'text', text: 'hello' }], processed_at: at },
  {
    id: 'sevt_5',
    type: 'agent.tool_use',
    name: 'bash',
    input: { command: 'true' },
    evaluated_permission: 'ask',
    evaluation: { type: 'auto', evaluated_permission: { type: 'ask', reason_code: 'indeterminate' } },
    processed_at: at,
  },
  { id: 'sevt_6', type: 'agent.tool_result', tool_use_id: 'sevt_5', is_error: true, processed_at: at },
  {
    id: 'sevt_7',
    type: 'session.status_idle',
    stop_reason: { type: 'requires_action', event_ids: ['sevt_5'] },
    stop_details: null,
    processed_at: at,
  },
  {
    id: 'sevt_8',
    type: 'session.error',
    error: { type: 'model_overloaded_error', message: 'busy', retry_status: { type: 'retrying' } },
    processed_at: at,
  },
  {
    id: 'sevt_9',
    type: 'span.model_request_end',
    model_request_start_id: 'sevt_10',
    is_error: false,
    model_usage: {
      input_tokens: 1,
      output_tokens: 2,
      cache_creation_input_tokens: 3,
      cache_read_input_tokens: 4,
      speed: 'standard',
    },
    processed_at: at,
  },
  {
    id: 'sevt_11',
    type: 'session.thread_created',
    session_thread_id: 'sthr_1',
    agent_name: 'Reviewer',
    workflow_run_id: null,
    processed_at: at,
  },
] satisfies BetaManagedAgentsSessionEvent[];

const asEvent = (event: { id: string; type: string; processed_at: string | null }): AnyEvent => ({
  ...event,
  id: EventId.parse(event.id),
  type: event.type as `${string}.${string}`,
});

describe('events', () => {
  it('are those of the public API, by name, and our own', () => {
    expectTypeOf<Exclude<EventType, OwnType>>().toEqualTypeOf<PublicType>();
  });

  it('of the hosted service are valid here', () => {
    for (const event of hosted) expect(eventProblem(asEvent(event))).toBeUndefined();
  });

  it('of a type from the future pass through untouched', () => {
    const future = { id: mint.event(), type: 'agent.dreamt' as const, processed_at: null, about: { sheep: 3 } };
    expect(isKnown(future)).toBe(false);
    expect(eventProblem(future)).toBeUndefined();
  });

  it('with fields from the future are valid, and keep them', () => {
    const event = { ...asEvent({ id: 'sevt_1', type: 'session.status_running', processed_at: at }), mood: 'good' };
    expect(isKnown(event)).toBe(true);
    expect(eventProblem(event)).toBeUndefined();
    expect(event.mood).toBe('good');
  });

  it('that lack what their type demands are named by field', () => {
    const event = asEvent({ id: 'sevt_1', type: 'agent.tool_result', processed_at: at });
    expect(eventProblem(event)).toContain('agent.tool_result: tool_use_id');
  });

  it('are drafted with a fresh id, and queued only where that is said', () => {
    const thread = ThreadId.parse('sthr_1');
    const one = draft('user.message', { content: [] }, { thread, queued: true });
    const two = draft('session.status_running', {});
    expect(one.event.processed_at).toBeNull();
    expect(two.event.processed_at).toBeUndefined();
    expect(one.event.id).not.toBe(two.event.id);
    expectTypeOf<KnownEvent['id']>().toEqualTypeOf<EventId>();
  });
});
