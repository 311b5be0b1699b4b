import { type Marker, markersIn, withoutMarkers } from './marker.ts';

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** How a call ended, read from its result as a model would read it. */
export type Ending = 'ok' | 'failed' | 'denied' | 'cancelled' | 'lost' | 'unknown' | 'timed_out';

export interface PastCall {
  name: string;
  input: Readonly<Json>;
  /** The result's text. */
  text: string;
  ending: Ending;
}

/** A conversation as a scenario sees it: all there is to go by, since the server remembers nothing. */
export interface Conversation {
  /** What the person said at the beginning of the scenario, without markers, and the marker that chose it, if any. */
  task: string;
  marker: Marker | null;
  /** Calls since then with their results, in order. */
  calls: readonly PastCall[];
  /** Replies since then. */
  replies: number;
  /** What the person said last, without markers. */
  lastSaid: string;
  /** What they said while tools ran, and the model has not answered yet; "" if nothing. */
  interjected: string;
  /** The scenario had come to its end (its last reply called no tool), and the person spoke again. */
  resumed: boolean;
  /** Names of the tools the model may call. */
  tools: ReadonlySet<string>;
}

/** The person's words in the newest user turn that has any, with all markers, and how many replies came since. */
export interface LatestWords {
  text: string;
  repliesSince: number;
}

const blocksOf = (message: unknown): Json[] => {
  if (!isObject(message)) return [];
  if (typeof message.content === 'string') return [{ type: 'text', text: message.content }];
  return Array.isArray(message.content) ? message.content.filter(isObject) : [];
};
const roleOf = (message: unknown): unknown => (isObject(message) ? message.role : undefined);

/** All text of some blocks, of a result's content too. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .filter(isObject)
    .map((block) => (typeof block.text === 'string' ? block.text : ''))
    .filter(Boolean)
    .join('\n');
}

const saidIn = (message: unknown): string =>
  roleOf(message) === 'user' ? textOf(blocksOf(message).filter((block) => block.type === 'text')) : '';

export function latestWords(messages: readonly unknown[]): LatestWords {
  let repliesSince = 0;
  for (const message of messages.toReversed()) {
    const text = saidIn(message);
    if (text) return { text, repliesSince };
    if (roleOf(message) === 'assistant') repliesSince += 1;
  }
  return { text: '', repliesSince };
}

const isChoice = (marker: Marker): boolean => marker.kind === 'rehearsal';

/** Reads the messages of a valid request. The scenario began where it was last chosen by a marker, else at the start. */
export function readConversation(messages: readonly unknown[], tools: readonly unknown[]): Conversation {
  const chosen = messages.findLastIndex((message) => markersIn(saidIn(message)).some(isChoice));
  const since = messages.slice(Math.max(chosen, 0));
  const opening = saidIn(since[0]);
  const replies = since.filter((message) => roleOf(message) === 'assistant');
  const lastReply = replies.at(-1);
  const newest = messages.at(-1);
  return {
    task: withoutMarkers(opening),
    marker: markersIn(opening).find(isChoice) ?? null,
    calls: callsOf(since),
    replies: replies.length,
    lastSaid: withoutMarkers(latestWords(messages).text),
    interjected: blocksOf(newest).some((block) => block.type === 'tool_result') ? withoutMarkers(saidIn(newest)) : '',
    resumed: lastReply !== undefined && !blocksOf(lastReply).some((block) => block.type === 'tool_use'),
    tools: new Set(tools.filter(isObject).map((tool) => String(tool.name))),
  };
}

function callsOf(messages: readonly unknown[]): PastCall[] {
  const results = new Map<unknown, Json>();
  for (const block of messages.flatMap(blocksOf))
    if (block.type === 'tool_result') results.set(block.tool_use_id, block);
  return messages
    .flatMap(blocksOf)
    .filter((block) => block.type === 'tool_use')
    .map((block) => {
      const result = results.get(block.id);
      const text = textOf(result?.content);
      return {
        name: String(block.name),
        input: isObject(block.input) ? block.input : {},
        text,
        ending: endingOf(text, result?.is_error === true),
      };
    });
}

const ENDINGS: readonly (readonly [Ending, RegExp])[] = [
  ['denied', /\b(denied|rejected|declined) this (call|tool)|\bdid not allow|\b(call|tool use) was (denied|rejected)/i],
  ['lost', /\b(sandbox|container)\b.*\b(lost|died|gone|went away)\b/i],
  ['unknown', /\bmay have (happened|taken effect)|\bnobody can say\b/i],
  ['cancelled', /^\[?(ended: )?((the call|tool execution) was )?(interrupted|cancell?ed)\b/i],
  ['timed_out', /\btimed out\b|\bdid not (finish within|answer in time)\b/i],
];

/**
 * A result says in words how its call ended, in its first line or its last. What a program printed in between, such as
 * a test runner's "cancelled 0", says nothing of the call.
 */
export function endingOf(text: string, isError: boolean): Ending {
  if (!isError) return 'ok';
  const lines = text.trim().split('\n');
  const telling = [lines[0] ?? '', lines.at(-1) ?? ''];
  const found = ENDINGS.find(([, words]) => telling.some((line) => words.test(line.trim())));
  return found?.[0] ?? 'failed';
}
