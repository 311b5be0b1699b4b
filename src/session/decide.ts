import type { StopReason } from '../protocol/event.ts';
import type { EventId, ThreadId } from '../protocol/ids.ts';
import type { SessionState } from './state.ts';

/** What the live harness is doing right now: ids of open requests and started calls. Empty after a crash. */
export type InHand = ReadonlySet<EventId>;

export type Step =
  | { type: 'request_model'; thread: ThreadId /** queued inputs to take in first */; inputs: EventId[] }
  | { type: 'close_request'; thread: ThreadId; request: EventId }
  | { type: 'run_tool'; thread: ThreadId; call: EventId }
  | { type: 'recover_tool'; thread: ThreadId; call: EventId }
  | { type: 'close_call'; thread: ThreadId; call: EventId; outcome: 'denied' | 'failed' | 'cancelled' | 'ok' }
  | { type: 'deliver'; thread: ThreadId; call: EventId; child: ThreadId }
  | { type: 'apply_interrupt'; thread: ThreadId; interrupts: EventId[]; calls: EventId[] }
  | { type: 'idle_thread'; thread: ThreadId; stop_reason: StopReason }
  | { type: 'idle_session'; stop_reason: StopReason };

export declare function decide(state: SessionState, inHand: InHand): Step[];
