import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Asks again every 100 ms until the answer is neither false, null, undefined nor an error, and returns it.
 * Throws after `timeoutMs`, naming what was waited for and the last error.
 */
export async function eventually<T>(
  what: string,
  timeoutMs: number,
  ask: () => T | Promise<T>,
): Promise<Exclude<T, false | null | undefined>> {
  const until = Date.now() + timeoutMs;
  let last: unknown;
  do {
    try {
      const answer = await ask();
      if (isYes(answer)) return answer;
      last = undefined;
    } catch (error) {
      last = error;
    }
    await sleep(100);
  } while (Date.now() < until);
  throw new Error(`Waited ${timeoutMs / 1000} s for ${what}, in vain.`, { cause: last });
}

const isYes = <T>(answer: T): answer is Exclude<T, false | null | undefined> =>
  answer !== false && answer !== null && answer !== undefined;
