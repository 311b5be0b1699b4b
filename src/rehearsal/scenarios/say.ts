import { say } from '../reply.ts';
import type { Scenario } from './scenario.ts';

const echo = (name: string): Scenario => ({
  name,
  about: 'Says what you said, nothing more.',
  reply: (conversation) => [say(conversation.lastSaid || 'You said nothing.')],
});

export const sayScenario = echo('say');
export const echoScenario = echo('echo');
