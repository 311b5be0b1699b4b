import { type ModelUsage, totalTokens } from '../../protocol/usage.ts';

/** A time in UTC, to the second: a page is read anywhere. */
export const moment = (iso: string): string => `${iso.slice(0, 19).replace('T', ' ')} UTC`;

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.round(ms / 60_000);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** US dollars; less than a cent is not rounded away. */
export const usd = (amount: number): string => `$${amount.toFixed(amount > 0 && amount < 0.1 ? 4 : 2)}`;

export const tokens = (usage: ModelUsage): string => totalTokens(usage).toLocaleString('en');
