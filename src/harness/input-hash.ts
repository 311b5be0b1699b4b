import { createHash } from 'node:crypto';
import { canonicalJson } from '../protocol/canonical.ts';

/** SHA-256, hex, of a tool's input as canonical JSON: what an approval of "exactly this call" is bound to. */
export const inputSha256 = (input: Readonly<Record<string, unknown>>): string =>
  createHash('sha256').update(canonicalJson(input)).digest('hex');
