import type { PastCall } from '../conversation.ts';
import { numberArg } from '../marker.ts';
import { call, type Part, say } from '../reply.ts';
import { count, excerpt, printedBy, type Scenario } from './scenario.ts';

/*
 * Small pieces that each show one thing. They are chosen by a marker, such as `[rehearsal:parallel]`.
 */

const endings = (calls: readonly PastCall[]): string =>
  calls
    .map(
      (past) =>
        `- \`${past.name}\` ended ${past.ending.replace('_', ' ')}: ${excerpt(past.ending === 'ok' ? printedBy(past.text) : past.text, 200) || '(no output)'}`,
    )
    .join('\n');

/** Three calls at once, which need not end in the order they were made. */
export const parallel: Scenario = {
  name: 'parallel',
  about: 'Three tool calls at once.',
  reply({ calls, resumed }) {
    if (resumed) return undefined;
    if (calls.length === 0) {
      return [
        say('Three things at once.'),
        call('bash', { command: 'sleep 0.3; echo slow' }),
        call('glob', { pattern: '*' }),
        call('bash', { command: 'echo quick' }),
      ];
    }
    return [say(`All three have come back.\n\n${endings(calls)}`)];
  },
};

const FILE = 'long-command.txt';

/** A command that leaves a trace when it starts and takes its time: what became of it can be seen from outside. */
export const longCommand: Scenario = {
  name: 'long-command',
  about: 'Appends a line to long-command.txt, sleeps for `seconds` (default 5), prints a line.',
  reply({ calls, resumed, marker }) {
    if (resumed) return undefined;
    const seconds = numberArg(marker?.args ?? {}, 'seconds', 5, 3600);
    const long = calls.find((past) => past.name === 'bash');
    const look = calls.find((past) => past.name === 'read');
    if (!long) {
      const command = `echo started >> ${FILE}; sleep ${seconds}; echo "done after ${seconds} s"`;
      return [
        say(`This takes ${count(seconds, 'second')}.`),
        call('bash', { command, timeout_ms: (seconds + 60) * 1000 }),
      ];
    }
    if (long.ending === 'ok') return [say(`The command ended and said: “${excerpt(printedBy(long.text))}”.`)];
    if (long.ending === 'denied') return [say('You did not allow the command, so nothing was done.')];
    if (!look) {
      return [
        say(`I do not know what became of the command (${long.ending}). The file it writes to will tell.`),
        call('read', { file_path: FILE }),
      ];
    }
    if (look.ending !== 'ok') return [say(`I could not see what the command did: ${excerpt(look.text)}`)];
    const times = look.text.match(/started/g)?.length ?? 0;
    return [
      say(
        `The command was started ${count(times, 'time')}, and I did not see it end. I will not run it again unasked.`,
      ),
    ];
  },
};

const DEFAULT_BYTES = 10 * 1024 * 1024;

/** Far more output than fits a conversation. */
export const bigOutput: Scenario = {
  name: 'big-output',
  about: 'Prints `bytes` of text (default 10 MiB).',
  reply({ calls, resumed, marker }) {
    if (resumed) return undefined;
    const bytes = numberArg(marker?.args ?? {}, 'bytes', DEFAULT_BYTES, 1e9);
    const [past] = calls;
    if (!past)
      return [
        say(`I will print ${count(bytes, 'byte')}.`),
        call('bash', { command: `yes "a line of output" | head -c ${bytes}` }),
      ];
    return [
      say(
        `The command ended ${past.ending.replace('_', ' ')}. I was given ${count(past.text.length, 'character')} of its output, which end: “${excerpt(past.text.slice(-200))}”.`,
      ),
    ];
  },
};

/** Bytes that are no text, from a command and from a file. */
export const binary: Scenario = {
  name: 'binary',
  about: 'Makes a binary file, then prints and reads it.',
  reply({ calls, resumed }) {
    if (resumed) return undefined;
    if (calls.length === 0) {
      const command =
        'head -c 4096 /dev/urandom > binary.bin && printf "\\000\\377\\376" >> binary.bin && cat binary.bin';
      return [say('I will make a binary file and print it.'), call('bash', { command })];
    }
    if (!calls.some((past) => past.name === 'read'))
      return [say('Now I will read it.'), call('read', { file_path: 'binary.bin' })];
    return [say(`This is what I was told of it.\n\n${endings(calls)}`)];
  },
};

/** A long session of small steps. */
export const manyTurns: Scenario = {
  name: 'many-turns',
  about: 'Makes `n` small calls, one after another (default 20).',
  reply({ calls, resumed, marker }) {
    if (resumed) return undefined;
    const n = numberArg(marker?.args ?? {}, 'n', 20, 2000);
    const ok = calls.filter((past) => past.ending === 'ok').length;
    if (calls.length < n)
      return [
        say(`Step ${calls.length + 1} of ${n}.`),
        call('bash', { command: `echo step ${calls.length + 1} of ${n}` }),
      ];
    return [say(`${count(ok, 'step')} of ${n} went well.`)];
  },
};

/** Any call at all, for tests: `[rehearsal:call tool=write] {"file_path": "a.txt", "content": "hi"}`. */
export const anyCall: Scenario = {
  name: 'call',
  about: 'Calls the tool named by `tool`, with the JSON after the marker as its input, then says how that ended.',
  reply({ calls, resumed, marker, task }): Part[] | undefined {
    if (resumed) return undefined;
    const input = inputOf(task);
    if (!input) return [say('After the marker I need a JSON object, the input of the call.')];
    if (calls.length === 0) return [call(marker?.args.tool ?? 'bash', input)];
    return [say(endings(calls))];
  },
};

function inputOf(task: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(task);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** Children that each say something: `[rehearsal:agents n=3]`. */
export const agents: Scenario = {
  name: 'agents',
  about: 'Starts `n` subagents at once (default 3), each of which runs one command.',
  reply({ calls, resumed, marker }) {
    if (resumed) return undefined;
    const n = numberArg(marker?.args ?? {}, 'n', 3, 30);
    if (calls.length > 0) return [say(`The agents reported.\n\n${endings(calls)}`)];
    const tasks = Array.from({ length: n }, (_, index) =>
      call('create_agent', {
        title: `Helper ${index + 1}`,
        task: `[rehearsal:many-turns n=1] This is for helper ${index + 1}.`,
      }),
    );
    return [say(`I will start ${count(n, 'agent')}.`), ...tasks];
  },
};
