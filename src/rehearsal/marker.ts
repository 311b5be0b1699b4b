/** `[rehearsal:say]`, `[fault:529 times=2 at=1]`: how a person or a test tells the rehearsal what to play. */
export interface Marker {
  kind: 'rehearsal' | 'fault';
  name: string;
  args: Readonly<Record<string, string>>;
}

const MARKER = /\[(rehearsal|fault):([\w-]+)((?:\s+[\w-]+=(?:"[^"]*"|[^\s\]]+))*)\s*\]/g;
const ARGUMENT = /([\w-]+)=(?:"([^"]*)"|([^\s\]]+))/g;

/** The markers in a text, in order. */
export function markersIn(text: string): Marker[] {
  return [...text.matchAll(MARKER)].map(([, kind, name = '', args = '']) => ({
    kind: kind === 'fault' ? 'fault' : 'rehearsal',
    name,
    args: Object.fromEntries(
      [...args.matchAll(ARGUMENT)].map(([, key = '', quoted, bare]) => [key, quoted ?? bare ?? '']),
    ),
  }));
}

/** The text without its markers. */
export const withoutMarkers = (text: string): string => text.replace(MARKER, '').trim();

/** A whole number given with a marker, kept within `most`. */
export function numberArg(args: Marker['args'], name: string, fallback: number, most: number): number {
  const value = Number.parseInt(args[name] ?? '', 10);
  return Number.isNaN(value) ? fallback : Math.min(Math.max(value, 0), most);
}
