import { activation } from './activation.ts';
import type { Promised } from './figure.ts';
import type { Bench, Given } from './given.ts';
import { appendDurable, appendVsRewrite } from './log-append.ts';
import { appendDoor } from './log-door.ts';
import { logOpen } from './log-open.ts';
import { logWake } from './log-wake.ts';
import { inject, passthrough } from './proxy.ts';
import { callLifetime } from './sandbox-call.ts';
import { sandboxCheckpoint } from './sandbox-checkpoint.ts';
import { sandboxExec } from './sandbox-exec.ts';
import { sandboxGrep } from './sandbox-grep.ts';
import { sandboxReady } from './sandbox-ready.ts';
import { search } from './search.ts';
import { noTools, onDemandVsCoupled } from './ttft.ts';

/** Every benchmark by the name its figures begin with. */
const benches: Record<string, Bench> = {
  'ttft.no_tools': noTools,
  'ttft.on_demand_vs_coupled': onDemandVsCoupled,
  activation,
  'log.append_durable': appendDurable,
  'log.append_vs_rewrite': appendVsRewrite,
  'log.append_door': appendDoor,
  'log.open': logOpen,
  'log.search': search,
  'log.wake': logWake,
  'proxy.passthrough': passthrough,
  'proxy.inject': inject,
  'sandbox.exec': sandboxExec,
  'sandbox.call_lifetime': callLifetime,
  'sandbox.checkpoint': sandboxCheckpoint,
  'sandbox.grep': sandboxGrep,
  'sandbox.ready': sandboxReady,
};

const given: Given = JSON.parse(process.argv[2] ?? '{}');
const chosen = Object.entries(benches).filter(
  ([name]) =>
    given.groups.length === 0 || given.groups.some((group) => name.startsWith(group) || group.startsWith(name)),
);
const say = (text: string): void => (given.json ? console.error(text) : console.log(text));

let broken = 0;
const figures: Promised[] = [];
for (const [name, bench] of chosen) {
  say(`Measuring ${name} …`);
  for (const figure of await bench(given, say)) {
    figures.push(figure);
    if (figure.ratio > figure.atMost) broken++;
    if (given.json) {
      const { atMost: _, ...shown } = figure;
      console.log(JSON.stringify(shown));
    }
  }
}
if (!given.json) table();
if (broken > 0) say(`${broken} of ${figures.length} figures are worse than promised.`);
process.exit(0);

function table(): void {
  const rows = [
    ['figure', 'Drover', 'baseline', 'ratio', 'promised'],
    ...figures.map((f) => [f.name, shown(f, f.value), shown(f, f.baseline), f.ratio.toFixed(3), `≤ ${f.atMost}`]),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  for (const row of rows) {
    console.log(
      row.map((cell, n) => (n === 0 ? cell.padEnd(widths[n] ?? 0) : cell.padStart(widths[n] ?? 0))).join('  '),
    );
  }
}

function shown(figure: Promised, value: number): string {
  return figure.unit === 'bytes' ? `${(value / 1024).toFixed(1)} KiB` : `${value.toFixed(1)} ${figure.unit}`;
}
