import type { EventOf } from '../protocol/event.ts';
import type { EventId } from '../protocol/ids.ts';
import { type Draft, draft } from '../protocol/record.ts';
import type { Finding, Redactor } from './redactor.ts';

type Alarm = EventOf<'drover.secret_alarm'>;

/**
 * The one way into a log. Every draft and every blob passes here before it is written; what must not be in a log is
 * taken out, and an alarm goes with it: there should be no way for a value to come here.
 */
export class Door {
  readonly #redactor: Redactor;
  readonly #ready: () => Promise<void>;
  readonly #onAlarm: (alarms: readonly Draft[]) => void;

  /**
   * @param ready resolves when the redactor knows what it must look for
   * @param onAlarm told of alarms, to tell a person
   */
  constructor(redactor: Redactor, ready: () => Promise<void>, onAlarm: (alarms: readonly Draft[]) => void) {
    this.#redactor = redactor;
    this.#ready = ready;
    this.#onAlarm = onAlarm;
  }

  ready(): Promise<void> {
    return this.#ready();
  }

  /** The draft as it may be stored, the same if there was nothing to take out, and the alarms that are stored with it. */
  draft(given: Draft): { draft: Draft; alarms: Draft[] } {
    const found: Finding[] = [];
    const tell = (finding: Finding) => void found.push(finding);
    const { id, type, ...fields } = given.event;
    const event = this.#redactor.value(fields, tell);
    const local = given.local && this.#local(given.local, tell);
    if (found.length === 0) return { draft: given, alarms: [] };
    const kept = { ...given, event: { id, type, ...event } as Draft['event'], ...(local ? { local } : {}) };
    const alarms = alarmsOf(found, 'record', { event_id: id, event_type: type });
    if (given.thread) for (const alarm of alarms) alarm.thread = given.thread;
    this.#onAlarm(alarms);
    return { draft: kept, alarms };
  }

  /** As `draft`, for what is stored beside the log. */
  bytes(given: Uint8Array): { bytes: Uint8Array; alarms: Draft[] } {
    const found: Finding[] = [];
    const bytes = this.#redactor.bytes(given, (finding) => found.push(finding));
    const alarms = alarmsOf(found, 'blob');
    if (alarms.length > 0) this.#onAlarm(alarms);
    return { bytes, alarms };
  }

  /** A block that is to be sent back exactly as it came is of no use when something was taken out of it. */
  #local(local: NonNullable<Draft['local']>, tell: (finding: Finding) => void): Draft['local'] {
    const { raw, ...rest } = local;
    const kept = this.#redactor.value(rest, tell);
    return raw !== undefined && this.#redactor.value(raw, tell) === raw ? { ...kept, raw } : kept;
  }
}

/** One alarm for each credential and form, however often it was found. */
export function alarmsOf(
  found: readonly Finding[],
  where: Alarm['where'],
  from: { event_id?: EventId; event_type?: string } = {},
): Draft[] {
  const counted = new Map<string, { finding: Finding; count: number }>();
  for (const finding of found) {
    const key = `${finding.credential_id ?? finding.name}\n${finding.form}`;
    const before = counted.get(key);
    if (before) before.count += 1;
    else counted.set(key, { finding, count: 1 });
  }
  return [...counted.values()].map(({ finding: { credential_id, vault_id, name, form }, count }) =>
    draft('drover.secret_alarm', {
      credential_id,
      vault_id,
      name,
      form,
      where,
      event_id: from.event_id ?? null,
      event_type: from.event_type ?? null,
      count,
    }),
  );
}
