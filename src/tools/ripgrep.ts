import type { Sandbox } from '../sandbox/sandbox.ts';
import { Refused } from './files.ts';
import type { ToolContext } from './tools.ts';
import { isIgnored } from './walk.ts';

/** Sandboxes that were seen to have no ripgrep. Only a question saved: after a restart it is asked again. */
const without = new WeakSet<Sandbox>();

/** For a folder that is ignored itself: whoever names it means what is in it. */
const IGNORED_TOO = '--no-ignore';

/**
 * Does something with ripgrep, or, in a sandbox that has none, without. `act` gets an option for it, or an empty string,
 * and says if it found nothing at all: then it may be that the very path is ignored, and it is asked once more.
 */
export async function withRipgrep<T extends { base: string }>(
  sandbox: Sandbox,
  context: ToolContext,
  where: string,
  act: (option: string) => Promise<T & { empty: boolean }>,
  otherwise: () => Promise<T>,
): Promise<T> {
  if (without.has(sandbox)) return await otherwise();
  try {
    const found = await act('');
    if (!found.empty || found.base === '' || !(await isIgnored(sandbox, context, where, found.base))) return found;
    return await act(IGNORED_TOO);
  } catch (error) {
    if (!(error instanceof Refused) || error.reason !== 'norg') throw error;
    without.add(sandbox);
    return await otherwise();
  }
}
