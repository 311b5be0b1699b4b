import type { Conversation } from '../conversation.ts';
import { type Part, type Reply, replyOf, say } from '../reply.ts';
import { crashCourse } from './crash-course.ts';
import { fixTheSample } from './fix-the-sample.ts';
import { lookAround } from './look-around.ts';
import { review } from './review.ts';
import { echoScenario, sayScenario } from './say.ts';
import { excerpt, type Scenario } from './scenario.ts';
import { agents, anyCall, bigOutput, binary, longCommand, manyTurns, parallel } from './small.ts';

/** All pieces the rehearsal can play. Those that know their task come first, the one that knows it best foremost. */
export const scenarios: readonly Scenario[] = [
  review,
  fixTheSample,
  lookAround,
  sayScenario,
  echoScenario,
  parallel,
  longCommand,
  bigOutput,
  binary,
  manyTurns,
  agents,
  crashCourse,
  anyCall,
];

/** The piece for a conversation: the one a marker names, else one that knows the task, else the tour. */
function choose({ marker, task }: Conversation): Scenario | undefined {
  if (marker) return scenarios.find((scenario) => scenario.name === marker.name);
  return scenarios.find((scenario) => scenario.matches?.(task)) ?? lookAround;
}

/** The next reply of a conversation. */
export function play(conversation: Conversation): Reply {
  const scenario = choose(conversation);
  if (!scenario) return replyOf([say(unknownPiece(conversation.marker?.name ?? ''))]);
  return replyOf(withAnswer(conversation, scenario.reply(conversation) ?? [say(AFTERWARDS)]));
}

/** Words said while the tools ran are not passed over. */
function withAnswer(conversation: Conversation, parts: Part[]): Part[] {
  if (!conversation.interjected) return parts;
  const at = parts.findIndex((part) => part.type !== 'thinking');
  return parts.toSpliced(
    Math.max(at, 0),
    0,
    say(`I have read what you added (“${excerpt(conversation.interjected)}”).`),
  );
}

const AFTERWARDS =
  'That was my whole piece: I am a rehearsal, a small program that plays a fixed part with your real tools and files. ' +
  'Run “Drover: Set API Key” and start a session with a real model to go on from here.';

const unknownPiece = (name: string): string =>
  `I know no piece named “${name}”. I can play: ${scenarios.map((scenario) => `\`${scenario.name}\` (${scenario.about})`).join(' ')}`;
