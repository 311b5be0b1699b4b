import type { AgentSnapshot } from '../protocol/drover-event.ts';
import type { EventId, ThreadId } from '../protocol/ids.ts';
import { noUsage } from '../protocol/usage.ts';
import type { ThreadState } from './state.ts';

/** A thread as it is before its first event. */
export function newThread(of: {
  id: ThreadId;
  parent: ThreadId | null;
  createdBy: EventId | null;
  at: string;
  agent: AgentSnapshot;
  name: string;
}): ThreadState {
  return {
    id: of.id,
    parent: of.parent,
    createdBy: of.createdBy,
    createdAt: of.at,
    agentName: of.name,
    agent: of.agent,
    status: 'idle',
    stopReason: null,
    entries: [],
    queue: [],
    interrupts: [],
    open: null,
    last: null,
    calls: [],
    unseenAt: -1,
    failures: 0,
    mcp: [],
    cuts: 0,
    interrupted: false,
    failure: null,
    usage: noUsage(),
    costUsd: 0,
    activeMs: 0,
    runningSince: null,
    updatedAt: of.at,
  };
}
