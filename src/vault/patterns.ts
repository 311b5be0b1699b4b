import { createHmac } from 'node:crypto';
import type { SessionId } from '../protocol/ids.ts';
import type { Masked } from '../protocol/record.ts';

/** Something that looks like a secret. Group 1, where there is one, is the secret; else the whole is. */
interface Look {
  kind: string;
  pattern: RegExp;
}

/** The forms in which the services themselves hand out keys. All of them are public, so that scanners can find them. */
const LOOKS: readonly Look[] = [
  { kind: 'private key', pattern: /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g },
  { kind: 'AWS access key', pattern: /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/g },
  { kind: 'GitHub token', pattern: /\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255})\b/g },
  { kind: 'GitLab token', pattern: /\bglpat-[A-Za-z0-9_-]{20,}/g },
  { kind: 'Slack token', pattern: /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/g },
  { kind: 'Stripe key', pattern: /\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}/g },
  { kind: 'Anthropic key', pattern: /\bsk-ant-[A-Za-z0-9_-]{20,}/g },
  { kind: 'OpenAI key', pattern: /\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,}/g },
  { kind: 'Google key', pattern: /\b(?:AIza[0-9A-Za-z_-]{35}|GOCSPX-[A-Za-z0-9_-]{28})/g },
  { kind: 'npm token', pattern: /\bnpm_[A-Za-z0-9]{36}\b/g },
  { kind: 'PyPI token', pattern: /\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}/g },
  { kind: 'SendGrid key', pattern: /\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}/g },
  { kind: 'Hugging Face token', pattern: /\bhf_[A-Za-z0-9]{34,}\b/g },
  { kind: 'signed token', pattern: /\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{16,}/g },
  { kind: 'password in an address', pattern: /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/@]{1,100}:([^\s@/:]{8,200})@/gi },
];

/** A line of an .env file: a name in capitals that says what it is, and a value that nobody made up by hand. */
const ENV_LINE =
  /\b[A-Z0-9_]*(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY|CREDENTIAL)[A-Z0-9_]*[ \t]*=[ \t]*["']?([^\s"'#;,]{12,})/g;
/** Bits per character below which a text of this length repeats itself too much to be made by chance. */
const MIN_ENTROPY = 3;
/** What refers to a value in place of being one: a variable, a call, a placeholder of a template, or one of ours. */
const REFERENCE = /[$(){}<>[\]]|process\.env|drover_ph_|^\/|^https?:|x{6,}|\*{4,}/i;

/** In place of a value. Whoever writes this back into a file would put the mask in place of the secret. */
const markOf = (kind: string, length: number): string =>
  `[masked: ${kind}, ${length} characters; a person can reveal it]`;
export const MASK = /\[masked: [A-Za-z .]{2,40}, \d+ characters; a person can reveal it\]/;

export interface Masking {
  text: string;
  masked: Masked[];
}

/**
 * The text with what looks like a secret masked. A finding is told from others by a keyed hash: the log has it, and a
 * short password can't be guessed from it.
 * @param revealed findings that a person lets the model see
 */
export function maskSecrets(text: string, key: Uint8Array, session: SessionId, revealed: readonly string[]): Masking {
  const spans = looks(text);
  if (spans.length === 0) return { text, masked: [] };
  const masked = new Map<string, Masked>();
  let out = '';
  let at = 0;
  for (const { start, end, kind } of spans) {
    if (start < at) continue;
    const value = text.slice(start, end);
    const finding = findingOf(value, key, session);
    if (revealed.includes(finding)) continue;
    out += text.slice(at, start) + markOf(kind, value.length);
    at = end;
    const before = masked.get(finding);
    masked.set(finding, { kind, finding, count: (before?.count ?? 0) + 1 });
  }
  return { text: out + text.slice(at), masked: [...masked.values()] };
}

const findingOf = (value: string, key: Uint8Array, session: SessionId): string =>
  createHmac('sha256', key).update(`${session}\n${value}`).digest('hex').slice(0, 16);

interface Span {
  start: number;
  end: number;
  kind: string;
}

function looks(text: string): Span[] {
  const spans: Span[] = [];
  for (const { kind, pattern } of LOOKS) {
    for (const match of text.matchAll(pattern)) add(spans, match, kind);
  }
  for (const match of text.matchAll(ENV_LINE)) {
    const value = match[1] ?? '';
    // What has no digit is words: an example, a passphrase at most.
    if (!REFERENCE.test(value) && /\d/.test(value) && entropy(value) >= MIN_ENTROPY)
      add(spans, match, 'secret of an environment');
  }
  return spans.sort((a, b) => a.start - b.start || b.end - a.end);
}

function add(spans: Span[], match: RegExpExecArray, kind: string): void {
  const value = match[1] ?? match[0];
  const start = match.index + match[0].lastIndexOf(value);
  spans.push({ start, end: start + value.length, kind });
}

/** Shannon's, in bits per character. */
function entropy(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length);
  return bits;
}
