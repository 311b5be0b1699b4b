import type { EventId } from '../protocol/ids.ts';
import type { LogRecord } from '../protocol/record.ts';
import type { SessionState, ToolCall } from './state.ts';

/** Folds a whole log. The first record must be `drover.session_created`; throws a TypeError otherwise. */
export declare function fold(records: Iterable<LogRecord>): SessionState;

/** Applies one more record IN PLACE and returns the same state; records at or before `state.head.seq` are passed over. */
export declare function apply(state: SessionState, record: LogRecord): SessionState;

/** Where a call stands. `refused` and `denied` calls get their result without running. */
export type CallPhase = 'void' | 'asking' | 'approved' | 'denied' | 'refused' | 'running' | 'done';
export declare function callPhase(state: SessionState, call: ToolCall): CallPhase;

/** Calls that wait for a person, oldest first, over all threads. */
export declare function pendingApprovals(state: SessionState): ToolCall[];
export type { EventId };
