import { createHash } from 'node:crypto';

/** The Messages API's limit for a tool's name. */
const LONGEST = 128;
/** Hexadecimal digits of a hash that make a name unmistakable. */
const DIGITS = 8;

/**
 * What the model calls a server's tool: `mcp__server__tool`. Where that would not fit, or could stand for another pair of
 * names, it carries a hash of the two, so that the same tool has the same name in every session whatever else there is.
 */
export function shownAs(server: string, tool: string): string {
  const plain = `mcp__${server}__${tool}`;
  if (isPlain(server) && isPlain(tool) && plain.length <= LONGEST) return plain;
  const hash = createHash('sha256').update(`${server}\0${tool}`).digest('hex').slice(0, DIGITS);
  const kept = `mcp__${cleaned(server).slice(0, 40)}__${cleaned(tool)}`;
  return `${kept.slice(0, LONGEST - DIGITS - 2)}__${hash}`;
}

/** Two underscores part the names, so neither may have them, or end with the half of such a pair. */
const isPlain = (name: string): boolean => /^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$/.test(name);

const cleaned = (name: string): string => name.replaceAll(/[^A-Za-z0-9-]+/g, '_').replaceAll(/^_|_$/g, '') || 'x';
