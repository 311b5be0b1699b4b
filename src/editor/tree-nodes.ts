import type { EventId } from '../protocol/ids.ts';
import type { LiveSession } from './live-session.ts';

/** A row of the Sessions tree. */
export type Node =
  | { kind: 'session'; session: LiveSession }
  | { kind: 'approval'; session: LiveSession; call: EventId }
  | { kind: 'archive' };
