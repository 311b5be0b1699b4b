import type { Locator } from 'playwright-core';
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
 * Allows what the panel asks, one card after the other, by its button, until there is a card with this text, which is
 * returned unanswered; with null, until the session has nothing left to do.
 */
export async function allowUntil(desk: Desk, text: RegExp, timeoutMs: number): Promise<Locator>;
export async function allowUntil(desk: Desk, text: null, timeoutMs: number): Promise<null>;
export async function allowUntil(desk: Desk, text: RegExp | null, timeoutMs: number): Promise<Locator | null> {
  let found: Locator | null = null;
  await eventually(text ? `a card that asks about ${text}` : 'the session to end', timeoutMs, async () => {
    const first = desk.panel.card().first();
    if (await first.isVisible()) {
      const call = await first.getAttribute('data-call', { timeout: 2_000 });
      const card = desk.panel.card().and(desk.panel.frame.locator(`[data-call="${call}"]`));
      if (text?.test((await card.textContent({ timeout: 2_000 })) ?? '')) found = card;
      // A card takes no answer before it could be read; the next round tries again.
      else await allowButton(card).click({ timeout: 2_000 });
    }
    return text === null ? await hasEnded(desk) : found;
  });
  return found;
}

export const allowButton = (card: Locator): Locator => card.getByRole('button', { name: /^Allow(?! from)/ });
