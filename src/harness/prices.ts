import type { ModelUsage, Usd } from '../protocol/usage.ts';

/** The price list the figures below were read from: the public list prices as they stood on this day. */
export const PRICE_TABLE = 'anthropic-2026-10-10';
/** The name under which a rehearsal is priced: nothing of it is billed. */
export const SIMULATED_TABLE = 'simulated (claude-sonnet-5-5 prices, nothing is billed)';
export const UNKNOWN_TABLE = 'unknown';

/** US dollars per million tokens, one figure for each of the four disjoint classes of tokens. */
interface Prices {
  input: number;
  /** Written to the five-minute cache, the only one Drover asks for. */
  cacheWrite: number;
  cacheRead: number;
  output: number;
}

interface Entry {
  /** Model ids without a date; a dated id of the same name has the same price. */
  models: readonly string[];
  prices: Prices;
  /** For prompts longer than `above` tokens, all classes of the request, the cached ones counted. */
  long?: { above: number; prices: Prices };
  /** What fast mode multiplies every class by, where the model has it. */
  fast?: number;
}

const per = (input: number, cacheWrite: number, cacheRead: number, output: number): Prices => ({
  input,
  cacheWrite,
  cacheRead,
  output,
});

const SONNET_5_5 = per(2, 2.5, 0.1, 10);

const LIST: readonly Entry[] = [
  { models: ['claude-fable-5-1', 'claude-mythos-5-1'], prices: per(10, 12.5, 0.25, 50) },
  { models: ['claude-fable-5', 'claude-mythos-5'], prices: per(10, 12.5, 1, 50) },
  { models: ['claude-opus-5-5'], prices: per(4, 5, 0.2, 20), fast: 2 },
  { models: ['claude-opus-5', 'claude-opus-4-8'], prices: per(5, 6.25, 0.5, 25), fast: 2 },
  { models: ['claude-opus-4-7', 'claude-opus-4-6', 'claude-opus-4-5'], prices: per(5, 6.25, 0.5, 25) },
  { models: ['claude-sonnet-5-5'], prices: SONNET_5_5 },
  { models: ['claude-sonnet-5'], prices: per(2, 2.5, 0.2, 10) },
  { models: ['claude-sonnet-4-6', 'claude-sonnet-4-5'], prices: per(3, 3.75, 0.3, 15) },
  {
    models: ['claude-haiku-5-5'],
    prices: per(0.1, 0.125, 0.01, 0.5),
    long: { above: 100_000, prices: per(0.5, 0.625, 0.05, 2.5) },
  },
  { models: ['claude-haiku-4-5'], prices: per(1, 1.25, 0.1, 5) },
];

const REHEARSAL: Entry = { models: ['drover-rehearsal'], prices: SONNET_5_5 };

const byModel = new Map<string, Entry>(LIST.flatMap((entry) => entry.models.map((model) => [model, entry] as const)));

/**
 * The entry of a model id, of which a date may be the tail (`claude-opus-4-5-20251101`, `…@20251101`). A name that
 * merely begins like a known one is another model (`claude-fable-5-2` is not `claude-fable-5`) and has no price here:
 * no price is better than a wrong one.
 */
const entryOf = (model: string): Entry | undefined => byModel.get(model.replace(/[-@]\d{8}$/, ''));

const sum = (usage: ModelUsage, prices: Prices): Usd =>
  (usage.input_tokens * prices.input +
    usage.cache_creation_input_tokens * prices.cacheWrite +
    usage.cache_read_input_tokens * prices.cacheRead +
    usage.output_tokens * prices.output) /
  1_000_000;

/**
 * List price in US dollars of one request, and the name of the table it comes from.
 * The classes of `usage` are disjoint, each is counted once. A model or a speed without a list price costs 0, "unknown".
 */
export function priceOf(model: string, usage: ModelUsage): { costUsd: Usd; priceTable: string } {
  const simulated = REHEARSAL.models.includes(model);
  const entry = simulated ? REHEARSAL : entryOf(model);
  const factor = usage.speed === 'fast' ? entry?.fast : 1;
  if (!entry || factor === undefined) return { costUsd: 0, priceTable: UNKNOWN_TABLE };
  const prompt = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens;
  const prices = entry.long && prompt > entry.long.above ? entry.long.prices : entry.prices;
  return { costUsd: sum(usage, prices) * factor, priceTable: simulated ? SIMULATED_TABLE : PRICE_TABLE };
}
