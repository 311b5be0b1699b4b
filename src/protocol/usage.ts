import { z } from 'zod';

/** Tokens of one model request. The four classes are disjoint: their sum is what was processed. */
export const ModelUsage = z.object({
  input_tokens: z.number(),
  output_tokens: z.number(),
  cache_creation_input_tokens: z.number(),
  cache_read_input_tokens: z.number(),
  speed: z.string().nullish(),
});
export type ModelUsage = z.infer<typeof ModelUsage>;

/** Public money: a whole number of cents as a string, so "2500" is $25.00. */
export const Money = z.object({ amount: z.string(), currency: z.string() });
export type Money = z.infer<typeof Money>;

/** US dollars as a number, fractions of a cent kept. Used inside; `Money` is for the public shape. */
export type Usd = number;

export const toMoney = (usd: Usd): Money => ({ amount: String(Math.round(usd * 100)), currency: 'USD' });

export const SessionUsage = z.object({
  input_tokens: z.number(),
  output_tokens: z.number(),
  cache_read_input_tokens: z.number(),
  cache_creation: z.object({
    ephemeral_5m_input_tokens: z.number(),
    ephemeral_1h_input_tokens: z.number(),
  }),
  list_cost: Money,
  active_seconds: z.number(),
});
export type SessionUsage = z.infer<typeof SessionUsage>;

export const noUsage = (): ModelUsage => ({
  input_tokens: 0,
  output_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
});

/** Adds `more` to `total` in place. */
export function addUsage(total: ModelUsage, more: ModelUsage): void {
  total.input_tokens += more.input_tokens;
  total.output_tokens += more.output_tokens;
  total.cache_creation_input_tokens += more.cache_creation_input_tokens;
  total.cache_read_input_tokens += more.cache_read_input_tokens;
}

export const totalTokens = (usage: ModelUsage): number =>
  usage.input_tokens + usage.output_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens;
