import type { Draft } from '../protocol/record.ts';
import type { LogDoor } from './log.ts';

/** The drafts without what must not be in a log; what tells of it comes behind them, in the same write. */
export function throughDoor(door: LogDoor | undefined, drafts: readonly Draft[]): readonly Draft[] {
  if (!door) return drafts;
  const alarms: Draft[] = [];
  const checked = drafts.map((draft) => {
    const passed = door.draft(draft);
    alarms.push(...passed.alarms);
    return passed.draft;
  });
  return [...checked, ...alarms];
}
