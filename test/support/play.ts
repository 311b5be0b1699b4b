import type { Desk } from './desk.ts';
import { eventsOf } from './events.ts';
import { eventually } from './eventually.ts';

/** Nothing is left to do, and nobody has to be asked. */
export async function hasEnded(desk: Desk): Promise<boolean> {
  const records = await desk.records();
  const standing = records.findLast(({ event }) => event.type.startsWith('session.status_'));
  return standing !== undefined && eventsOf([standing], 'session.status_idle')[0]?.stop_reason.type === 'end_turn';
}

/**
 * Allows whatever the panel asks, one card after the other, by its button, until the session has nothing left to do.
 * Returns how many cards were answered.
 */
export async function allowAll(desk: Desk, timeoutMs: number): Promise<number> {
  const answered = new Set<string>();
  await eventually('the session to end, with everything allowed', timeoutMs, async () => {
    const card = desk.panel.card().first();
    if (await card.isVisible()) {
      const call = await card.getAttribute('data-call');
      // A card takes no answer before it could be read; the next round tries again.
      await card.getByRole('button', { name: /^Allow(?! from)/ }).click({ timeout: 2_000 });
      if (call) answered.add(call);
    }
    return await hasEnded(desk);
  });
  return answered.size;
}
