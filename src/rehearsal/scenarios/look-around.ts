import type { Conversation, PastCall } from '../conversation.ts';
import { call, say, think } from '../reply.ts';
import { count, excerpt, linesOf, type Scenario } from './scenario.ts';

const LIST = 'pwd && ls -1A | head -n 40';

const isList = (past: PastCall): boolean => past.name === 'bash' && past.input.command === LIST;
const isReadme = (past: PastCall): boolean => past.name === 'read' && /readme/i.test(String(past.input.file_path));

/** A harmless tour of any folder: look, read, run one command, say what was seen. */
export const lookAround: Scenario = {
  name: 'look-around',
  about: 'A harmless tour of the folder: list it, read its README, say what is there.',
  reply(conversation) {
    if (conversation.resumed) return undefined;
    const glob = conversation.calls.find((past) => past.name === 'glob');
    const list = conversation.calls.find(isList);
    if (!glob && !list) {
      return [
        think('I do not know this folder. A listing and one command will tell me what kind of project it is.'),
        say('I will look around first: which files there are, and what the folder looks like from the shell.'),
        call('glob', { pattern: '**/*' }),
        call('bash', { command: LIST }),
      ];
    }
    const readme = conversation.calls.find(isReadme);
    const path = readmeOf(glob, list);
    if (path && !readme)
      return [say('There is a README. It should say what this is.'), call('read', { file_path: path })];
    return [say(summary(conversation, glob, list, readme))];
  },
};

const filesIn = (glob: PastCall): string[] => linesOf(glob.text).filter((line) => !line.startsWith('No file '));

function readmeOf(glob: PastCall | undefined, list: PastCall | undefined): string | undefined {
  const paths = glob?.ending === 'ok' ? filesIn(glob) : [];
  const listed = list?.ending === 'ok' ? linesOf(list.text).slice(1) : [];
  const isReadmePath = (path: string) => /(^|\/)readme(\.\w+)?$/i.test(path);
  const byDepth = [...paths, ...listed].filter(isReadmePath).sort((a, b) => a.split('/').length - b.split('/').length);
  return byDepth[0];
}

function summary(
  conversation: Conversation,
  glob: PastCall | undefined,
  list: PastCall | undefined,
  readme: PastCall | undefined,
): string {
  const facts: string[] = [];
  if (list?.ending === 'ok') {
    const [folder = '', ...entries] = linesOf(list.text);
    facts.push(
      `The folder is \`${folder}\`, with ${entries.length === 1 ? '1 entry' : `${entries.length} entries`} at its top.`,
    );
  }
  if (glob?.ending === 'ok') facts.push(`The listing names ${count(filesIn(glob).length, 'file')}.`);
  if (readme?.ending === 'ok') facts.push(`Its README begins: “${excerpt(readme.text)}”`);
  const failed = conversation.calls.filter((past) => past.ending !== 'ok');
  const troubles = failed.map(
    (past) => `\`${past.name}\` ended ${past.ending.replace('_', ' ')}: ${excerpt(past.text)}`,
  );
  const found = facts.length > 0 ? `This is what I saw.\n\n- ${facts.join('\n- ')}` : 'I saw nothing of the folder.';
  const lost = troubles.length > 0 ? `\n\nNot everything worked:\n\n- ${troubles.join('\n- ')}` : '';
  return `${found}${lost}\n\nI am a rehearsal: I play a fixed piece, though with your real files. Set an API key to talk to a real model.`;
}
