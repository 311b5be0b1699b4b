import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach } from 'vitest';
import type { ModelBlock, ModelCall, ModelClient, ModelMessage } from '../../../src/harness/model.ts';
import { REHEARSAL_MODEL } from '../../../src/rehearsal/models.ts';
import { type Rehearsal, startRehearsal } from '../../../src/rehearsal/server.ts';

const run = promisify(execFile);
const sample = resolve(import.meta.dirname, '../../../sample');
/** Replies in one conversation: none of the pieces needs more. */
const MOST_REPLIES = 60;

export interface Result {
  text: string;
  isError: boolean;
}
export type Call = { name: string; input: Record<string, unknown> };
/** Takes a call's result out of the driver's hands: a denial, a dead sandbox. Undefined: run it. */
export type Meddle = (call: Call, nth: number) => Result | undefined;

const tool = (name: string) => ({ name, description: name, input_schema: { type: 'object' as const } });
const TOOLS = ['bash', 'read', 'write', 'edit', 'glob', 'grep'].map(tool);

/** A copy of the sample project in a folder of its own, a git repository with one commit. */
async function sampleCopy(): Promise<{ folder: string; remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'drover-sample-'));
  await cp(sample, folder, { recursive: true });
  const git = (...args: string[]) =>
    run('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], { cwd: folder });
  await git('init', '-q');
  await git('add', '-A');
  await git('commit', '-qm', 'sample');
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

interface Stage {
  server: Rehearsal;
  folder: string;
}

/** For each test of the file a rehearsal and a copy of the sample of its own. */
export function eachOnItsOwnSample(): Stage {
  let stage: (Stage & { remove: () => Promise<void> }) | undefined;
  beforeEach(async () => {
    stage = { server: await startRehearsal(), ...(await sampleCopy()) };
  });
  afterEach(async () => {
    await stage?.server.close();
    await stage?.remove();
  });
  const now = () => {
    if (!stage) throw new Error('There is a stage only while a test runs.');
    return stage;
  };
  return {
    get server() {
      return now().server;
    },
    get folder() {
      return now().folder;
    },
  };
}

/** A small harness: real tools in a real folder, a real client, a conversation in memory. */
export class Driver {
  readonly messages: ModelMessage[] = [];
  /** Every call of this conversation and of its children, in order. */
  readonly calls: Call[] = [];
  readonly children: Driver[] = [];
  readonly #client: ModelClient;
  readonly #folder: string;
  readonly #meddle: Meddle;
  readonly #isChild: boolean;

  constructor(client: ModelClient, folder: string, meddle: Meddle = () => undefined, isChild = false) {
    this.#client = client;
    this.#folder = folder;
    this.#meddle = meddle;
    this.#isChild = isChild;
  }

  /** Says something and goes on until the model calls no more tools. Its last words. */
  async say(text: string): Promise<string> {
    this.messages.push({ role: 'user', content: [{ type: 'text', text }] });
    for (let replies = 0; replies < MOST_REPLIES; replies += 1) {
      const blocks = await this.#ask();
      const calls = blocks.filter((block) => block.type === 'tool_use');
      if (calls.length === 0) return textOf(blocks);
      const results: ModelBlock[] = [];
      for (const call of calls) results.push(await this.#answer(call));
      this.messages.push({ role: 'user', content: results });
    }
    throw new Error(`The piece did not end within ${MOST_REPLIES} replies.`);
  }

  async #ask(): Promise<ModelBlock[]> {
    const call: ModelCall = {
      model: REHEARSAL_MODEL,
      max_tokens: 4096,
      system: 'You are a software engineering agent.',
      messages: this.messages,
      tools: this.#isChild ? TOOLS : [...TOOLS, tool('create_agent')],
    };
    const on = { onStart: () => undefined, onDelta: () => undefined, onRetry: () => undefined };
    const { blocks } = await this.#client.request(call, on, new AbortController().signal);
    this.messages.push({ role: 'assistant', content: blocks });
    return blocks;
  }

  async #answer(block: ModelBlock): Promise<ModelBlock> {
    const call: Call = { name: String(block.name), input: block.input as Record<string, unknown> };
    this.calls.push(call);
    const nth = this.calls.filter((other) => other.name === call.name).length;
    const { text, isError } = this.#meddle(call, nth) ?? (await this.#execute(call));
    return {
      type: 'tool_result',
      tool_use_id: block.id,
      content: text ? [{ type: 'text', text }] : [],
      ...(isError ? { is_error: true } : {}),
    };
  }

  async #execute({ name, input }: Call): Promise<Result> {
    try {
      switch (name) {
        case 'bash':
          return await this.#bash(String(input.command));
        case 'glob':
          return await this.#bash(
            `shopt -s globstar nullglob; for f in ${input.pattern}; do [ -f "$f" ] && echo "$f"; done; true`,
          );
        case 'read':
          return { text: await readFile(join(this.#folder, String(input.file_path)), 'utf8'), isError: false };
        case 'edit':
          return await this.#edit(String(input.file_path), String(input.old_string), String(input.new_string));
        case 'create_agent':
          return { text: await this.#child(String(input.task)), isError: false };
        default:
          return { text: `There is no tool named ${name}.`, isError: true };
      }
    } catch (error) {
      return { text: String(error), isError: true };
    }
  }

  /** With this Node first on PATH, and nothing of the test runner's own environment. */
  async #bash(command: string): Promise<Result> {
    const env = { PATH: `${dirname(process.execPath)}:${process.env.PATH}`, HOME: this.#folder };
    try {
      const { stdout, stderr } = await run('bash', ['-c', command], { cwd: this.#folder, env, timeout: 30_000 });
      return { text: stdout + stderr, isError: false };
    } catch (error) {
      const { stdout = '', stderr = '', code } = error as { stdout?: string; stderr?: string; code?: number };
      return { text: `${stdout}${stderr}\nexit code ${code}`, isError: true };
    }
  }

  async #edit(path: string, before: string, after: string): Promise<Result> {
    const file = join(this.#folder, path);
    const text = await readFile(file, 'utf8');
    const found = text.split(before).length - 1;
    if (found !== 1) return { text: `old_string was found ${found} times, it must be there once.`, isError: true };
    await writeFile(
      file,
      text.replace(before, () => after),
    );
    return { text: `Edited ${path}.`, isError: false };
  }

  async #child(task: string): Promise<string> {
    const child = new Driver(this.#client, this.#folder, this.#meddle, true);
    this.children.push(child);
    return await child.say(task);
  }
}

const textOf = (blocks: readonly ModelBlock[]): string =>
  blocks
    .filter((block) => block.type === 'text')
    .map((block) => block.text)
    .join('\n');
