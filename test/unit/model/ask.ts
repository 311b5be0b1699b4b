import { createAnthropicClient } from '../../../src/harness/anthropic.ts';
import { type ModelCall, type ModelClient, ModelFailure, type ModelReply } from '../../../src/harness/model.ts';
import type { SessionError } from '../../../src/protocol/event.ts';
import type { ErrorCause } from '../../../src/protocol/record.ts';
import { REHEARSAL_MODEL } from '../../../src/rehearsal/models.ts';

/** Long enough to be hidden where it must be, and found where it must not. */
export const KEY = 'sk-test-0123456789-secret';

export const clientFor = (
  url: string,
  more: { key?: string | undefined; maxRetries?: number; stallMs?: number } = {},
) =>
  createAnthropicClient({
    apiKey: async () => ('key' in more ? more.key : KEY),
    baseUrl: () => url,
    maxRetries: more.maxRetries ?? 2,
    ...(more.stallMs === undefined ? {} : { stallMs: more.stallMs }),
  });

export const BASH = {
  name: 'bash',
  description: 'Runs a command.',
  input_schema: { type: 'object' as const, properties: { command: { type: 'string' } } },
};

export const callOf = (text: string, more: Partial<ModelCall> = {}): ModelCall => ({
  model: REHEARSAL_MODEL,
  max_tokens: 1024,
  system: 'You are being tested.',
  messages: [{ role: 'user', content: [{ type: 'text', text }] }],
  tools: [BASH],
  ...more,
});

export interface Heard {
  events: string[];
  retries: { error: SessionError; cause: ErrorCause; inMs: number }[];
  /** Streamed text by block. */
  texts: string[];
}

/** A listener that writes down what it hears. */
export function listener() {
  const heard: Heard = { events: [], retries: [], texts: [] };
  return {
    heard,
    onStart: (index: number, block: { type: string; name?: string }) => {
      heard.events.push(`start ${index} ${block.type}${block.name ? ` ${block.name}` : ''}`);
      heard.texts[index] = '';
    },
    onDelta: (index: number, text: string) => {
      heard.events.push(`delta ${index}`);
      heard.texts[index] += text;
    },
    onRetry: (error: SessionError, cause: ErrorCause, inMs: number) => {
      heard.retries.push({ error, cause, inMs });
    },
  };
}

export async function ask(
  client: ModelClient,
  call: ModelCall,
  signal: AbortSignal = new AbortController().signal,
): Promise<{ reply: ModelReply; heard: Heard }> {
  const on = listener();
  return { reply: await client.request(call, on, signal), heard: on.heard };
}

/** The failure of a request that must fail. */
export async function failureOf(
  client: ModelClient,
  call: ModelCall,
  signal: AbortSignal = new AbortController().signal,
): Promise<{ failure: ModelFailure; heard: Heard }> {
  const on = listener();
  try {
    await client.request(call, on, signal);
  } catch (error) {
    if (error instanceof ModelFailure) return { failure: error, heard: on.heard };
    throw error;
  }
  throw new Error('The request was expected to fail and did not.');
}
