import { expect, test } from 'vitest';
import { PRICE_TABLE, priceOf, SIMULATED_TABLE, UNKNOWN_TABLE } from '../../../src/harness/prices.ts';
import { noUsage } from '../../../src/protocol/usage.ts';

const MILLION = 1_000_000;
const usage = (input: number, write: number, read: number, output: number) => ({
  input_tokens: input,
  cache_creation_input_tokens: write,
  cache_read_input_tokens: read,
  output_tokens: output,
});

test.each([
  // model, dollars per million: input, cache write, cache read, output
  ['claude-fable-5-1', 10, 12.5, 0.25, 50],
  ['claude-mythos-5', 10, 12.5, 1, 50],
  ['claude-opus-5-5', 4, 5, 0.2, 20],
  ['claude-opus-5', 5, 6.25, 0.5, 25],
  ['claude-opus-4-5', 5, 6.25, 0.5, 25],
  ['claude-sonnet-5-5', 2, 2.5, 0.1, 10],
  ['claude-sonnet-5', 2, 2.5, 0.2, 10],
  ['claude-sonnet-4-6', 3, 3.75, 0.3, 15],
  ['claude-haiku-4-5', 1, 1.25, 0.1, 5],
])('a million tokens of each class of %s cost what the price list says', (model, input, write, read, output) => {
  expect(priceOf(model, usage(MILLION, 0, 0, 0)).costUsd).toBeCloseTo(input, 9);
  expect(priceOf(model, usage(0, MILLION, 0, 0)).costUsd).toBeCloseTo(write, 9);
  expect(priceOf(model, usage(0, 0, MILLION, 0)).costUsd).toBeCloseTo(read, 9);
  expect(priceOf(model, usage(0, 0, 0, MILLION)).costUsd).toBeCloseTo(output, 9);
  expect(priceOf(model, noUsage()).priceTable).toBe(PRICE_TABLE);
});

test('each class is counted once: the request is the sum of its four parts', () => {
  // Opus 5.5: 1,000 × 4 + 20,000 × 5 + 300,000 × 0.2 + 4,000 × 20 = 244,000 millionths of a dollar
  expect(priceOf('claude-opus-5-5', usage(1000, 20_000, 300_000, 4000)).costUsd).toBeCloseTo(0.244, 12);
});

test('a dated id has the price of its model', () => {
  expect(priceOf('claude-haiku-4-5-20251001', usage(MILLION, 0, 0, 0)).costUsd).toBeCloseTo(1, 9);
  expect(priceOf('claude-opus-4-5@20251101', usage(MILLION, 0, 0, 0)).costUsd).toBeCloseTo(5, 9);
});

test('Haiku 5.5 is dearer when the prompt, cached parts counted, is longer than 100,000 tokens', () => {
  // 100,000 × 0.10 = 10,000 millionths; one token more: 100,001 tokens at 0.50 or, cached, at 0.05
  expect(priceOf('claude-haiku-5-5', usage(100_000, 0, 0, 0)).costUsd).toBeCloseTo(0.01, 12);
  expect(priceOf('claude-haiku-5-5', usage(100_001, 0, 0, 0)).costUsd).toBeCloseTo(0.0500005, 12);
  expect(priceOf('claude-haiku-5-5', usage(1, 0, 100_000, 0)).costUsd).toBeCloseTo(0.0050005, 12);
  // output does not lengthen the prompt: 10,000 + 200,000 × 0.50 = 110,000 millionths
  expect(priceOf('claude-haiku-5-5', usage(100_000, 0, 0, 200_000)).costUsd).toBeCloseTo(0.11, 12);
});

test.each(['claude-fable-5-2', 'claude-opus-5-9', 'claude-opus', 'llama-4', ''])(
  'a model without a list price (%s) costs nothing known, rather than the price of one with a like name',
  (model) => {
    expect(priceOf(model, usage(MILLION, MILLION, MILLION, MILLION))).toEqual({
      costUsd: 0,
      priceTable: UNKNOWN_TABLE,
    });
  },
);

test('a rehearsal is priced like Sonnet 5.5, under a name that says nothing is billed', () => {
  const { costUsd, priceTable } = priceOf('drover-rehearsal', usage(1000, 2000, 3000, 4000));
  // 2,000 + 5,000 + 300 + 40,000 = 47,300 millionths
  expect(costUsd).toBeCloseTo(0.0473, 12);
  expect(priceTable).toBe(SIMULATED_TABLE);
  expect(priceTable).toMatch(/nothing is billed/);
});

test('fast mode doubles the price where the model has it, and has no price elsewhere', () => {
  const fast = { ...usage(0, 0, 0, MILLION), speed: 'fast' };
  expect(priceOf('claude-opus-5-5', fast).costUsd).toBeCloseTo(40, 9);
  expect(priceOf('claude-haiku-4-5', fast)).toEqual({ costUsd: 0, priceTable: UNKNOWN_TABLE });
});
