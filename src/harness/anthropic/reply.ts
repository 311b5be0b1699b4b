import type { ModelUsage } from '../../protocol/usage.ts';
import { noUsage } from '../../protocol/usage.ts';
import type { ModelBlock, ModelListener } from '../model.ts';

/** A streaming event of the Messages API, loosely: what a newer service adds must pass through, not break us. */
export type StreamEvent = { type: string; [key: string]: unknown };

interface Building {
  block: ModelBlock;
  /** Pieces of the tool input's JSON, null while none came. */
  json: string | null;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const asText = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Gathers one reply from its stream so that nothing of it is lost: every block stands as the API would have sent it whole. */
export class ReplyBuilder {
  readonly #on: ModelListener;
  readonly #building: Building[] = [];
  /** The stream's own block index → place in the reply. */
  readonly #places = new Map<unknown, number>();
  readonly #started = performance.now();
  #usage: ModelUsage | null = null;
  stopReason: string | null = null;
  stopDetails: unknown = null;
  /** The stream said that the reply is whole. Without it, it broke off. */
  complete = false;
  /** ms from the builder's making to the first content. */
  ttftMs: number | null = null;

  constructor(on: ModelListener) {
    this.#on = on;
  }

  /** What had been used by now, as far as the stream said. */
  get usage(): ModelUsage | null {
    return this.#usage;
  }

  take(event: StreamEvent): void {
    switch (event.type) {
      case 'message_start':
        if (isObject(event.message)) this.#count(event.message.usage);
        return;
      case 'content_block_start':
        this.#start(event.index, event.content_block);
        return;
      case 'content_block_delta':
        this.#delta(event.index, event.delta);
        return;
      case 'message_delta':
        this.#count(event.usage);
        if (!isObject(event.delta)) return;
        this.stopReason = typeof event.delta.stop_reason === 'string' ? event.delta.stop_reason : this.stopReason;
        this.stopDetails = event.delta.stop_details ?? this.stopDetails;
        return;
      case 'message_stop':
        this.complete = true;
    }
  }

  /** The blocks, tool inputs parsed; and the text of those inputs that are no JSON object, by block index. */
  finish(): { blocks: ModelBlock[]; malformed: Map<number, string> } {
    const malformed = new Map<number, string>();
    const blocks = this.#building.map(({ block, json }, index) => {
      if (json === null || json === '') return block;
      const input = parseObject(json);
      if (!input) malformed.set(index, json);
      return { ...block, input: input ?? {} };
    });
    return { blocks, malformed };
  }

  #start(index: unknown, content: unknown): void {
    if (!isObject(content) || typeof content.type !== 'string') return;
    this.ttftMs ??= performance.now() - this.#started;
    const place = this.#building.length;
    this.#places.set(index, place);
    this.#building.push({ block: { ...content, type: content.type }, json: null });
    this.#on.onStart(place, {
      type: content.type,
      ...(typeof content.name === 'string' ? { name: content.name } : {}),
    });
    const opening = asText(content.text) || asText(content.thinking);
    if (opening) this.#on.onDelta(place, opening);
  }

  #delta(index: unknown, delta: unknown): void {
    const place = this.#places.get(index);
    const building = place === undefined ? undefined : this.#building[place];
    if (place === undefined || !building || !isObject(delta)) return;
    const shown = merge(building, delta);
    if (shown) this.#on.onDelta(place, shown);
  }

  /** `message_start` counts the prompt, `message_delta` gives totals so far: the later figure replaces the earlier. */
  #count(usage: unknown): void {
    if (!isObject(usage)) return;
    const total = { ...(this.#usage ?? noUsage()) };
    for (const key of [
      'input_tokens',
      'output_tokens',
      'cache_creation_input_tokens',
      'cache_read_input_tokens',
    ] as const) {
      const value = usage[key];
      if (typeof value === 'number') total[key] = value;
    }
    if (typeof usage.speed === 'string') total.speed = usage.speed;
    this.#usage = total;
  }
}

/** Puts a delta into its block; gives back what of it is worth showing while it streams. */
function merge(building: Building, delta: Record<string, unknown>): string {
  const { block } = building;
  switch (delta.type) {
    case 'text_delta':
      block.text = asText(block.text) + asText(delta.text);
      return asText(delta.text);
    case 'thinking_delta':
      block.thinking = asText(block.thinking) + asText(delta.thinking);
      return asText(delta.thinking);
    case 'signature_delta':
      block.signature = delta.signature;
      return '';
    case 'citations_delta':
      block.citations = [...(Array.isArray(block.citations) ? block.citations : []), delta.citation];
      return '';
    case 'input_json_delta':
      building.json = (building.json ?? '') + asText(delta.partial_json);
      return asText(delta.partial_json);
    default: {
      // A kind this version does not know carries final values, as compaction blocks do: keep them all.
      const { type: _, ...fields } = delta;
      Object.assign(block, fields);
      return '';
    }
  }
}

function parseObject(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
