import { createHash } from 'node:crypto';
import type { CredentialId, SessionId } from '../protocol/ids.ts';

/** What every placeholder begins with. */
export const PLACEHOLDER_PREFIX = 'drover_ph_';
const DIGITS = 32;
/** Characters, each of them a byte. */
export const PLACEHOLDER_LENGTH = PLACEHOLDER_PREFIX.length + DIGITS;
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Any placeholder, of whichever session. Global: use it with `matchAll`, `replaceAll`. */
export const PLACEHOLDER = /drover_ph_[0-9A-Za-z]{32}/g;

/**
 * What a sandbox has in place of a value. Unique per session and credential, and the same again after a crash: both ids
 * are random (117 bits each) and neither is ever inside a sandbox, so nothing needs to be kept to make it anew, and
 * nobody inside can tell what it stands for or make another one. Letters, digits and `_` alone: it is the same in a
 * header, a URL, JSON and a shell, and its base64 has no padding of its own to be mistaken for.
 */
export function placeholderFor(session: SessionId, credential: CredentialId): string {
  const bytes = createHash('sha512').update(`drover placeholder\n${session}\n${credential}`).digest();
  let digits = '';
  for (const byte of bytes.subarray(0, DIGITS)) digits += ALPHABET[byte % ALPHABET.length];
  return PLACEHOLDER_PREFIX + digits;
}
