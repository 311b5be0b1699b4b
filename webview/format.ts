/*
 * How figures are written. All pure, so that a figure looks the same in the tree, the header and the inspector.
 */

/** A span of time: `85 ms`, `1.2 s`, `34 s`, `4 m 05 s`, `2 h 03 m`. */
export function duration(ms: number): string {
  const value = Math.max(0, ms);
  if (value < 1000) return `${Math.round(value)} ms`;
  if (value < 9_950) return `${(value / 1000).toFixed(1)} s`;
  const seconds = Math.round(value / 1000);
  if (seconds < 60) return `${seconds} s`;
  const two = (n: number) => String(n).padStart(2, '0');
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${two(seconds % 60)} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} m`;
}

/** A running span in whole seconds, so that a clock that ticks once a second does not jitter. */
export const ticking = (ms: number): string => (ms < 1000 ? '0 s' : duration(Math.floor(ms / 1000) * 1000 + 0.5));

/** A count of tokens: `950`, `12.4k`, `1.25M`. */
export function tokens(count: number): string {
  if (count < 1000) return String(count);
  if (count < 99_950) return `${(count / 1000).toFixed(1)}k`;
  if (count < 999_500) return `${Math.round(count / 1000)}k`;
  return `${(count / 1_000_000).toFixed(2)}M`;
}

/** US dollars, to the cent; what costs less than one cent says so instead of looking free. */
export function usd(amount: number): string {
  if (amount > 0 && amount < 0.01) return '<$0.01';
  return `$${amount.toFixed(2)}`;
}

/** US dollars with fractions of a cent, for a single request. */
export const usdExact = (amount: number): string => `$${amount.toFixed(amount < 1 ? 4 : 2)}`;

export function bytes(count: number): string {
  if (count < 1024) return `${count} bytes`;
  if (count < 1024 * 1024) return `${(count / 1024).toFixed(count < 10_240 ? 1 : 0)} KiB`;
  return `${(count / 1024 / 1024).toFixed(1)} MiB`;
}

/** `1 approval`, `3 approvals`. */
export const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`;

const time = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', hourCycle: 'h23' });
const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' });

/** Time of day, local. */
export const clock = (iso: string): string => time.format(new Date(iso));

/** Date and time of day, local. */
export const moment = (iso: string): string => dateTime.format(new Date(iso));

/** ms since 1970 of an RFC 3339 time. */
export const ms = (iso: string): number => Date.parse(iso);

/** The last part of a path, whichever way its slashes lean. */
export const baseName = (path: string): string => path.split(/[\\/]/).pop() || path;

/** The first line, with an ellipsis if there is more. */
export function firstLine(text: string): string {
  const end = text.indexOf('\n');
  return end < 0 ? text : `${text.slice(0, end)} …`;
}
