import type { SessionId, ThreadId } from '../src/protocol/ids.ts';

/** Which row was at the top of the conversation, and how far it was scrolled past, in CSS px. */
export interface Anchor {
  key: string;
  offset: number;
}

export type Tab = 'conversation' | 'timeline' | 'network';

/**
 * What survives a reload of the window. The host's serializer needs `sessionId` and nothing else;
 * the rest is comfort. Everything that matters is in the log.
 */
export interface Saved {
  sessionId: SessionId | null;
  thread: ThreadId | null;
  tab: Tab;
  draft: string;
  /** null: at the end, where new things appear. */
  anchor: Anchor | null;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

function readAnchor(value: unknown): Anchor | null {
  if (!isObject(value)) return null;
  return typeof value.key === 'string' && typeof value.offset === 'number'
    ? { key: value.key, offset: value.offset }
    : null;
}

/** Reads what an earlier version of the panel may have saved: what does not fit is left at its default. */
export function readSaved(value: unknown): Saved {
  const from = isObject(value) ? value : {};
  return {
    sessionId: typeof from.sessionId === 'string' ? (from.sessionId as SessionId) : null,
    thread: typeof from.thread === 'string' ? (from.thread as ThreadId) : null,
    tab: from.tab === 'timeline' || from.tab === 'network' ? from.tab : 'conversation',
    draft: typeof from.draft === 'string' ? from.draft : '',
    anchor: readAnchor(from.anchor),
  };
}
