import type { Finding, Findings } from './findings.ts';
import type { Verification } from './verify.ts';

/** What a person reads of a verification: the verdict, the first bad line, then all that was found. */
export function verifyReport(of: { title: string; path: string; at: Date }, found: Verification): string {
  const { wrong, stale, head, kept, blobs } = found;
  const [first] = wrong.listed;
  return [
    `Drover: log of “${of.title}”`,
    of.path,
    `Checked ${of.at.toISOString()}`,
    '',
    first ? `NOT AS IT WAS WRITTEN: ${count(wrong.count, 'finding')}` : 'All as it was written.',
    ...(first ? [`First: ${sentence(first)}`] : []),
    '',
    `Log     ${count(found.records, 'record')}, ${count(found.bytes, 'byte')}: hash, chain, number, fence and event of each`,
    `Head    record ${head.seq}, hash ${head.hash || 'none'}`,
    kept
      ? `End     had been saved up to record ${kept.seq}, hash ${kept.hash}`
      : 'End     nothing beside the log says how far it had been saved, so lines cut off at the end would not show',
    `Blobs   ${blobs.whole} whole, ${count(blobs.bytes, 'byte')} read${blobs.unnamed > 0 ? `; ${blobs.unnamed} named by no record` : ''}`,
    ...(found.unknown > 0 ? [`Unknown ${count(found.unknown, 'record')} of types this version does not know`] : []),
    ...(found.newer ? ['Newer   written by a newer Drover, so this one can only read it'] : []),
    ...listing('Findings', wrong),
    ...listing('Late records of writers that had lost the session (readers pass over them)', stale),
    '',
  ].join('\n');
}

const count = (of: number, what: string): string => `${of.toLocaleString('en')} ${what}${of === 1 ? '' : 's'}`;

function listing(title: string, { listed, count: all }: Findings): string[] {
  if (all === 0) return [];
  const rest = all - listed.length;
  return ['', `${title}:`, ...listed.map((one) => `  ${sentence(one)}`), ...(rest > 0 ? [`  … and ${rest} more`] : [])];
}

function sentence({ line, offset, seq, reason }: Finding): string {
  const where = [
    line === null ? '' : `line ${line}`,
    offset === null ? '' : `byte ${offset}`,
    seq === null ? '' : `record ${seq}`,
  ].filter((part) => part !== '');
  return `${where.length > 0 ? where.join(', ') : 'session'}: ${reason}`;
}
