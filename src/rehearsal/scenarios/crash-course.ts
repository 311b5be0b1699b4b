import type { Conversation, PastCall } from '../conversation.ts';
import { call, type Part, say } from '../reply.ts';
import { count, printedBy, type Scenario } from './scenario.ts';
import { stopped } from './trouble.ts';

/*
 * A session made to be broken at any place: parallel calls, an approval, a subagent, a container that dies under a
 * command, and commands that each leave one line in a file. Whoever reads that file afterwards sees what happened not
 * at all, once, or twice.
 */

/** The file in the workspace that the commands leave their lines in. */
const FILE = 'crash-course.txt';
const REPORT = 'crash-course-report.txt';
/** A step is tried so often before the piece gives up. */
const MOST_ATTEMPTS = 4;

/** One thing to be done, and the call that does it. `line` is what it leaves in the file, if it leaves something. */
interface Step {
  wanted: string;
  call: { name: string; input: Readonly<Record<string, unknown>> };
  line?: string;
}

const leave = (line: string, before: string, after: string): Step => ({
  wanted: `leave the line “${line}”`,
  line,
  call: { name: 'bash', input: { command: `${before}echo ${line} >> ${FILE}; ${after}` } },
});

/** Each part's steps in stages; those of one stage are called at once. */
const PARTS: Readonly<Record<string, readonly (readonly Step[])[]>> = {
  main: [
    [
      leave('alpha', '', 'echo alpha is there; sleep 0.4; echo that was alpha'),
      leave('beta', 'echo wait for beta; sleep 0.2; ', 'echo that was beta'),
      { wanted: 'list the files', call: { name: 'glob', input: { pattern: '*' } } },
    ],
    [
      {
        wanted: 'write the report',
        call: { name: 'write', input: { file_path: REPORT, content: 'alpha and beta are there\n' } },
      },
      {
        wanted: 'have a helper leave a line too',
        call: {
          name: 'create_agent',
          input: { agent: 'Helper', title: 'Helper', task: '[rehearsal:crash-course part=helper] Leave your line.' },
        },
      },
    ],
    // Whoever plays the world takes the container away when it reads this.
    [leave('delta', '', 'echo the container goes down; sleep 20')],
    [leave('epsilon', 'echo in a fresh container; sleep 0.2; ', 'sleep 0.2; echo that was epsilon')],
  ],
  helper: [[leave('gamma', '', 'echo gamma is there; sleep 0.2')]],
};

export const crashCourse: Scenario = {
  name: 'crash-course',
  about: 'Leaves lines in crash-course.txt in all sorts of ways, each once; needs an agent named Helper.',
  reply(conversation) {
    if (conversation.resumed) return undefined;
    const stages = PARTS[conversation.marker?.args.part ?? 'main'] ?? [];
    for (const stage of stages) {
      const next = goOn(stage, conversation);
      if (next) return next;
    }
    return [
      say(`All is done: ${count(stages.flat().length, 'step')}, in ${count(conversation.calls.length, 'call')}.`),
    ];
  },
};

/** What a stage still needs; undefined if all of it is done. */
function goOn(stage: readonly Step[], { calls }: Conversation): Part[] | undefined {
  const states = stage.map((step) => ({ step, ...stateOf(step, calls) }));
  const refused = states.find(({ state }) => state === 'refused');
  if (refused?.last) return stopped(refused.last, refused.step.wanted);
  if (states.some(({ state }) => state === 'unclear'))
    return [
      say('I do not know what became of that. I will look before I do it again.'),
      call('read', { file_path: FILE }),
    ];
  const open = states.filter(({ state }) => state === 'open');
  if (open.length === 0) return undefined;
  return [
    say(`I will ${open.map(({ step }) => step.wanted).join(', ')}.`),
    ...open.map(({ step }) => call(step.call.name, step.call.input)),
  ];
}

type StepState = 'open' | 'done' | 'unclear' | 'refused';

function stateOf(step: Step, calls: readonly PastCall[]): { state: StepState; last: PastCall | undefined } {
  const attempts = calls.filter((past) => isOf(step, past));
  const last = attempts.at(-1);
  if (!last) return { state: 'open', last };
  if (last.ending === 'ok') return { state: 'done', last };
  if (last.ending === 'denied' || attempts.length >= MOST_ATTEMPTS) return { state: 'refused', last };
  const { line } = step;
  // What leaves no line does no harm a second time.
  if (line === undefined) return { state: 'open', last };
  const looks = calls.slice(calls.lastIndexOf(last) + 1).filter((past) => past.name === 'read');
  const seen = looks.find((past) => past.ending === 'ok' || /does not exist/.test(past.text));
  if (!seen) return { state: looks.length < MOST_ATTEMPTS ? 'unclear' : 'refused', last };
  return { state: holds(seen, line) ? 'done' : 'open', last };
}

const isOf = (step: Step, past: PastCall): boolean =>
  past.name === step.call.name && JSON.stringify(past.input) === JSON.stringify(step.call.input);

/** The file had the line when it was read. */
const holds = (look: PastCall, line: string): boolean =>
  look.ending === 'ok' && printedBy(look.text).split('\n').includes(line);
