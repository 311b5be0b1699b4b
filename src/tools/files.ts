import { posix } from 'node:path';
import { mint } from '../protocol/ids.ts';
import type { RunResult, Sandbox } from '../sandbox/sandbox.ts';
import { failed, interrupted } from './outcomes.ts';
import type { Outcome, ToolContext } from './tools.ts';

/** ms for a helper program: long enough for a slow disk, short enough that a hung mount shows. */
const HELPER_MS = 60_000;

/** A refusal that is the tool's answer. */
export class Refused extends Error {
  readonly outcome: Outcome;
  /** What the file script said, such as `missing`; empty where none was asked. */
  readonly reason: string;
  constructor(outcome: Outcome, reason = '') {
    super('refused');
    this.outcome = outcome;
    this.reason = reason;
  }
}

export interface Answer {
  /** Fields after `ok`, the path last. */
  fields: string[];
  stdout: Uint8Array;
  /** What came after the answer's own line. */
  rest: string;
}

/**
 * Runs one of the file scripts. `fields` is how many fields the answer has after `ok`; `own`: it is the call's act
 * itself, which is looked for after a crash.
 * Throws `Refused` with the outcome if the script says no, and what `sandbox.run` throws.
 */
export async function ask(
  sandbox: Sandbox,
  context: ToolContext,
  script: string,
  call: { path: string; args: string[]; fields: number; stdin?: Uint8Array; maxBytes: number; own?: boolean },
): Promise<Answer> {
  const path = absolute(sandbox.workspace, call.path);
  const result = await sandbox.run({
    // Only the act that the log knows by this id may be found under it.
    executionId: call.own ? context.executionId : mint.execution(),
    argv: ['sh', '-c', script, 'drover', sandbox.workspace, path, ...call.args],
    inShell: true,
    timeoutMs: HELPER_MS,
    signal: context.signal,
    maxBytes: call.maxBytes,
    ...(call.stdin ? { stdin: call.stdin } : {}),
  });
  return readAnswer(result, call.path, call.fields, sandbox.workspace);
}

/** What a file script answered. Throws `Refused`. */
export function readAnswer(result: RunResult, path: string, fields: number, workspace: string): Answer {
  const stopped = interrupted(result);
  if (stopped) throw new Refused(stopped);
  const said = new TextDecoder().decode(result.stderr);
  const [verdict, ...words] = said.split(' ');
  if (verdict === 'no') {
    const reason = words[0]?.trim() ?? '';
    throw new Refused(failed(refusal(reason, path, words.slice(1).join(' '), workspace)), reason);
  }
  if (verdict !== 'ok')
    throw new Refused(
      failed(`The sandbox could not do this: ${said.trim().slice(0, 500) || `exit code ${result.exitCode}`}`),
    );
  const last = words.slice(fields - 1).join(' ');
  const newline = last.indexOf('\n');
  const realPath = newline === -1 ? last : last.slice(0, newline);
  return {
    fields: [...words.slice(0, fields - 1), realPath],
    stdout: result.stdout,
    rest: newline === -1 ? '' : last.slice(newline + 1),
  };
}

/** A path as the model gives it → absolute and lexically normal. Throws `Refused` if its text alone leads out. */
export function absolute(workspace: string, path: string): string {
  const full = posix.normalize(posix.isAbsolute(path) ? path : posix.join(workspace, path));
  const trimmed = full.length > 1 ? full.replace(/\/+$/, '') : full;
  if (path.includes('\0') || (trimmed !== workspace && !trimmed.startsWith(`${workspace}/`)))
    throw new Refused(failed(refusal('outside', path, '', workspace)), 'outside');
  return trimmed;
}

function refusal(reason: string, path: string, detail: string, workspace: string): string {
  switch (reason) {
    case 'missing':
      return `${path} does not exist.`;
    case 'outside':
      return `${path} leads outside the workspace${detail ? ` (to ${detail})` : ''}; the file tools reach only what is in ${workspace}.`;
    case 'hidden':
      return `${path} is in .drover, where the sessions themselves are kept; the tools don't go there.`;
    case 'folder':
      return `${path} is a folder, not a file.`;
    case 'notfolder':
      return `${path} is not in a folder: a part of the path is a file.`;
    case 'deadlink':
      return `${path} goes through a link that leads nowhere in the sandbox, so nothing was written.`;
    case 'special':
      return `${path} is not a regular file (it is a device, a pipe or a socket), so it is left alone.`;
    case 'unreadable':
      return `${path} can't be read: the sandbox's user has no permission.`;
    case 'unwritable':
      return `${path} can't be written: the folder is read-only for the sandbox's user, or for everyone.`;
    case 'readonly':
      return `${path} is write-protected, so it was not changed.`;
    case 'protected':
      return `${detail || path} is protected: what is written there would be run or trusted outside the sandbox. Ask the person to make this change.`;
    case 'changed':
      return `${path} was changed by someone else while this was being done, so nothing was written. Read it again, then decide anew.`;
    case 'full':
      return `${path} could not be written whole (the disk may be full), so it was left as it was.`;
    case 'loop':
      return `${path} is a link that leads round in a circle.`;
    case 'nofind':
    case 'nogrep':
      return `The sandbox's image has no ${reason.slice(2)}, which this tool needs; use bash instead.`;
    case 'noworkspace':
      return `The workspace folder ${workspace} is not there in the sandbox any more.`;
    default:
      return `${path} was refused (${reason}).`;
  }
}
