import { stratify } from 'd3-hierarchy';
import type { ThreadId } from '../../src/protocol/ids.ts';
import { totalTokens } from '../../src/protocol/usage.ts';
import type { SessionState, ThreadState } from '../../src/session/state.ts';
import { ms } from '../format.ts';

/** What a thread used. ms, tokens, US dollars. */
export interface Figures {
  tokens: number;
  usd: number;
  activeMs: number;
}

/** One line of the subagent tree. */
export interface Branch {
  thread: ThreadState;
  /** 0 for the primary. */
  depth: number;
  own: Figures;
  /** The thread's own figures and those of all its descendants; null where there are none. */
  total: Figures | null;
  /** Place among its siblings, from 1, and how many they are. */
  position: number;
  siblings: number;
}

/** ms a thread was at work, the stretch that is still open counted up to `now`. */
export const activeMs = (of: Pick<ThreadState, 'activeMs' | 'runningSince'>, now: number): number =>
  of.activeMs + (of.runningSince === null ? 0 : Math.max(0, now - ms(of.runningSince)));

const figures = (thread: ThreadState, now: number): Figures => ({
  tokens: totalTokens(thread.usage),
  usd: thread.costUsd,
  activeMs: activeMs(thread, now),
});

function sum(all: readonly Figures[]): Figures {
  const total: Figures = { tokens: 0, usd: 0, activeMs: 0 };
  for (const one of all) {
    total.tokens += one.tokens;
    total.usd += one.usd;
    total.activeMs += one.activeMs;
  }
  return total;
}

/** The threads as a tree, flattened from the top: each parent stands directly above its children. */
export function branches(session: SessionState, now: number): Branch[] {
  const parentOf = (thread: ThreadState): ThreadId | null => {
    if (thread.id === session.primary) return null;
    return thread.parent && session.threads.has(thread.parent) ? thread.parent : session.primary;
  };
  const root = stratify<ThreadState>()
    .id((thread) => thread.id)
    .parentId(parentOf)([...session.threads.values()]);
  const result: Branch[] = [];
  root.eachBefore((node) => {
    const below = node.descendants();
    const siblings = node.parent?.children ?? [node];
    result.push({
      thread: node.data,
      depth: node.depth,
      own: figures(node.data, now),
      total: below.length > 1 ? sum(below.map((one) => figures(one.data, now))) : null,
      position: siblings.indexOf(node) + 1,
      siblings: siblings.length,
    });
  });
  return result;
}
