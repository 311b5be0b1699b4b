import { createHash } from 'node:crypto';
import { z } from 'zod';

const Stored = z.object({ seq: z.number(), fence: z.number(), prev: z.string(), hash: z.string() });
const HASH = /,"hash":"([\w-]{22})"\}$/;

/**
 * The log's bytes, checked without the program that wrote them: every line whole, its hash right, the chain unbroken,
 * no gap, fences only rising. Lines of a stale writer are counted and passed over.
 */
export function chainProblems(bytes: Buffer): { problems: string[]; stale: number } {
  const problems: string[] = [];
  let head = { seq: -1, fence: 0, hash: '' };
  let stale = 0;
  if (bytes.at(-1) !== 0x0a) problems.push('the log does not end with a newline');
  for (const [index, line] of bytes.toString().split('\n').slice(0, -1).entries()) {
    const at = `line ${index + 1}`;
    const hash = HASH.exec(line)?.[1];
    const body = line.replace(HASH, '');
    if (hash === undefined || hashOf(body) !== hash) {
      problems.push(`${at} does not have the hash of its bytes`);
      continue;
    }
    const record = Stored.parse(JSON.parse(line));
    if (record.fence < head.fence) {
      stale += 1;
      continue;
    }
    if (record.seq !== head.seq + 1) problems.push(`${at} is record ${record.seq}, after ${head.seq}`);
    if (record.prev !== head.hash) problems.push(`${at} does not follow from the record before it`);
    head = record;
  }
  return { problems, stale };
}

const hashOf = (body: string): string => createHash('sha256').update(body).digest('base64url').slice(0, 22);
