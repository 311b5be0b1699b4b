import type { Conversation } from '../conversation.ts';
import type { Part } from '../reply.ts';

/**
 * A piece to be played by the rehearsal model. It reacts to what the tools really returned, and claims nothing else.
 * It must be a pure function of the conversation: the server that asks it remembers nothing.
 */
export interface Scenario {
  /** What stands in `[rehearsal:name]`. */
  name: string;
  /** One line for people. */
  about: string;
  /** This task is played by this scenario, though no marker says so. */
  matches?(task: string): boolean;
  /** The next reply; undefined when the piece is over and there is nothing to add to what the person says. */
  reply(conversation: Conversation): Part[] | undefined;
}

/** The beginning of a text, on one line, for quoting. */
export function excerpt(text: string, most = 160): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > most ? `${line.slice(0, most).toWellFormed()}…` : line;
}

/** "1 file", "2 files". */
export const count = (n: number, noun: string): string => `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`;

/** The lines of an output without blank ones, and without a tool's own notes, which stand in brackets. */
export const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^\[.*\]$/.test(line));

/** What a command printed, without the tool's own notes. */
export const printedBy = (text: string): string => linesOf(text).join('\n');
