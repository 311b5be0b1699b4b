import type { Readable, Writable } from 'node:stream';
import type { Environment } from '../protocol/environment.ts';
import { DroverError } from '../protocol/errors.ts';
import type { EventId, ExecutionId, SandboxId, SessionId } from '../protocol/ids.ts';
import type { Draft, Seq } from '../protocol/record.ts';
import type { EgressOwner } from '../vault/egress.ts';

/** The interface of `sandbox/`: hands that run one program at a time and can die without taking the session along. */
export interface Sandbox {
  readonly id: SandboxId;
  /** `host`: it is none, see environments of that type. */
  readonly kind: 'container' | 'os' | 'host';
  /** Absolute path of the workspace folder inside. */
  readonly workspace: string;
  /**
   * Runs a program and resolves when it has ended, however it ended. Output and exit code are kept inside the sandbox
   * by `executionId`, so that `lookup` finds them after this process has died.
   * Throws `SandboxLost` if the sandbox went away under it.
   */
  run(request: RunRequest): Promise<RunResult>;
  /**
   * What became of an execution: asked by a harness that did not see it end. `maxBytes` as in `run`.
   */
  lookup(executionId: ExecutionId, maxBytes?: number): Promise<Found>;
  /**
   * The beginning of a regular file of the workspace, without a program being run for it. null where it is not that
   * simple (missing, a link, a folder, unreadable, outside, an odd name): a program must look, and can say why.
   * Throws `SandboxLost`.
   */
  peek?(path: string, maxBytes: number, signal: AbortSignal): Promise<Peeked | null>;
  /**
   * Starts a program that stays and is spoken to, such as a server over its input and output. It is what `run` would
   * start: the same user, variables and way out. Nothing of it is kept, and it does not outlive the sandbox or this
   * process. A program that can't be started is one that has ended.
   * Throws `SandboxLost`, and `SandboxUnavailable` in a sandbox that lives for one call.
   */
  open(request: OpenRequest): Promise<LivingProcess>;
}

/**
 * `executionId` is of the program alone: what it does on the network is put down to it. `${NAME}` in its arguments and
 * variables stands for a placeholder of the session's vaults.
 */
export type OpenRequest = Pick<RunRequest, 'executionId' | 'argv' | 'cwd' | 'env'>;

/** A program that runs inside, with all that it has started. */
export interface LivingProcess {
  readonly executionId: ExecutionId;
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** The last 8 KiB of its standard error. */
  stderr(): string;
  /** How it ended; undefined while it runs. */
  readonly end: ProcessEnd | undefined;
  /** The same, when it has. Never rejects. */
  readonly ended: Promise<ProcessEnd>;
  /**
   * Does something that the program works for, as a part of a call: the sandbox is then looked after as for `run`, is
   * not idle, and the ledger has what the program did, put down to that call if it is named. Throws `ProcessGone` if it can't be used any more.
   */
  during<T>(act: () => Promise<T>, call?: ExecutionId): Promise<T>;
  /** Ends it and what it started: its input first, then by force. Resolves when it has ended. Never throws. */
  stop(reason?: string): Promise<void>;
}

export interface ProcessEnd {
  /** `stopped`: somebody asked for it. `lost`: the sandbox or the connection to it went away. */
  how: 'exited' | 'stopped' | 'lost';
  /** null unless it exited by itself. 128 + n after signal n. */
  exitCode: number | null;
  /** Why, to follow "it ended because"; empty if it exited by itself. */
  reason: string;
}

export interface RunRequest {
  executionId: ExecutionId;
  /** Program and arguments, no shell in between. */
  argv: readonly string[];
  /**
   * `argv` is `['sh', '-c', script, name, …]` with a script of ours that makes no use of `$$` and `$PPID`: it may be run
   * by a shell that is there already. Never for what a model or a person wrote.
   */
  inShell?: boolean;
  /** Given to the program's standard input, which is then closed. Default: empty. */
  stdin?: Uint8Array;
  /** Absolute, inside the sandbox. Default: the workspace. */
  cwd?: string;
  env?: Readonly<Record<string, string>>;
  /** ms until the whole process group is killed. */
  timeoutMs: number;
  signal: AbortSignal;
  /** Called with output as it comes, stdout and stderr in one stream. */
  onOutput?: (chunk: Uint8Array) => void;
  /** At most so many bytes are returned per stream, head and tail kept. Default 256 KiB; what was cut is counted. */
  maxBytes?: number;
}

export interface RunResult {
  /** `lost`: whatever waited for it inside was killed, so nobody knows its end. The sandbox itself lives. */
  ended: 'exited' | 'timed_out' | 'cancelled' | 'lost';
  /** null unless it exited by itself. 128 + n after signal n. */
  exitCode: number | null;
  stdout: Uint8Array;
  stderr: Uint8Array;
  /** Bytes between the kept head and tail that were left out, both streams. */
  cutBytes: number;
  durationMs: number;
}

export interface Peeked {
  /** Relative to the workspace. */
  realPath: string;
  bytes: Uint8Array;
  /** There is more of the file than `bytes`. */
  more: boolean;
}

export type Found =
  | { found: 'finished'; result: RunResult }
  /** It still runs: `wait` attaches to it. */
  | { found: 'running'; wait(signal: AbortSignal, onOutput?: (chunk: Uint8Array) => void): Promise<RunResult> }
  | { found: 'absent' };

/** Appends to the session's log, durable when it resolves. What is made is logged before it is made. */
export type AppendRecords = (drafts: Draft[]) => Promise<void>;

export interface SandboxOwner {
  session: SessionId;
  environment: Environment;
  /** Absolute path of the workspace folder on the host. */
  workspaceFolder: string;
  record: AppendRecords;
  /** The sandbox that, as far as the log knows, is alive: `drover.sandbox_lost` is appended by whoever finds it gone. */
  inUse?: () => SandboxId | null;
  /** Fence of the lease under which its sandboxes are made. */
  lease?: number;
  /** The sandboxes of calls that were started and, as far as the log knows, have no result yet. */
  acting?: () => ReadonlySet<SandboxId>;
  /** A line of progress for people, such as the build's output. */
  onProgress?: (line: string) => void;
  /** For the sandbox's way out. Absent: it has no credentials, and nobody is asked for a host. */
  egress?: EgressOwner;
}

/** Makes, finds and removes sandboxes. It keeps no truth of its own: labels on the engine and the log say what exists. */
export interface SandboxProvider {
  /**
   * The session's sandbox, provisioned if there is none alive; concurrent callers share one provisioning.
   * In an environment of `lifetime: call` one that nobody had before, for this caller alone, until it is released.
   * Appends `drover.sandbox_provisioning`, then `_ready` or `_failed`; only `_ready` for one that a former process left.
   * Throws `SandboxUnavailable`.
   */
  acquire(owner: SandboxOwner): Promise<Sandbox>;
  /**
   * Begins to make what `acquire` will be asked for, for a call that is on its way. Never throws: a failure is in the
   * log, and the next `acquire` throws it if it is a fresh one, else tries again.
   */
  prepare(owner: SandboxOwner): void;
  /**
   * A sandbox of this id that is still alive, or null if it is gone: never provisions. For recovery.
   * Throws `SandboxUnavailable` if nobody can say: the engine does not answer.
   */
  attach(owner: SandboxOwner, id: SandboxId): Promise<Sandbox | null>;
  /**
   * The call that ran in it has its result in the log, or it was acquired for nothing. A sandbox that lives for one
   * call goes, and another is made for the next; one that lasts as long as its session stays. May be said twice.
   */
  release(owner: SandboxOwner, id: SandboxId): void;
  /** Removes the session's sandboxes. Appends `drover.sandbox_removed`. Never throws: what could not be removed is reaped later. */
  remove(owner: Pick<SandboxOwner, 'session' | 'record'>, reason: string): Promise<void>;
  /** Removes labelled leftovers of this workspace whose session is not in `keep`. Returns how many. */
  reap(workspaceFolder: string, keep: ReadonlySet<SessionId>): Promise<number>;
  /**
   * Removes all that no session to `keep` needs: this folder's sandboxes, those of folders that are gone, what they
   * left, and the images made for them; of those with installed packages, those of `environments` stay.
   * Throws `SandboxUnavailable` where nothing could be looked for.
   */
  cleanUp(
    workspaceFolder: string,
    keep: ReadonlySet<SessionId>,
    environments: readonly Environment[],
  ): Promise<Cleaned>;
  /** Makes a sandbox as a call would get it, looks around in it and removes it. Never throws. */
  examine(owner: Omit<SandboxOwner, 'session' | 'record'>): Promise<Check[]>;
  /** The engine that is in use, and why this one; null as long as none was asked for. */
  serving(): string | null;
  /** What would serve this environment here, in one sentence; or why nothing can. For the UI. */
  diagnose(environment: Environment): Promise<{ ok: boolean; text: string }>;
  dispose(): Promise<void>;
}

/** One thing that was looked at, in one sentence. */
export interface Check {
  what: 'engine' | 'image' | 'mounts' | 'user' | 'network';
  ok: boolean;
  text: string;
}

/** How many were removed. */
export interface Cleaned {
  sandboxes: number;
  images: number;
  /** Networks and volumes. */
  others: number;
  /** Images with the packages of an environment that were kept for it. */
  packages: number;
}

/** Where a session's files are kept as they were after its calls. It is on the host, whatever the sandbox is. */
export interface Checkpoints {
  /** Takes a session's checkpoints while it is at work here. Nothing is done until something is asked of it. */
  follow(owner: CheckpointOwner): CheckpointKeeper;
}

export interface CheckpointOwner extends Pick<SandboxOwner, 'session' | 'environment' | 'workspaceFolder' | 'record'> {
  /** What the log says now. */
  log(): {
    head: Seq;
    /** The record a forked session begins with; -1 for any other. */
    forkedAt: Seq;
    checkpoint: { commit: string; seq: Seq } | null;
    /** Why no checkpoint could be taken last; told already. */
    problem: string | null;
    /** Calls started after this record that may have changed files. */
    startedAfter(seq: Seq): EventId[];
  };
}

/** Never throws and never keeps a session from going on: what can't be done is in the log, once. */
export interface CheckpointKeeper {
  /** Begins with the session's first checkpoint, so that nobody waits for it later. */
  warm(): void;
  /** Before a call that may change files starts: resolves when what was there before it is kept. */
  before(call: EventId): Promise<void>;
  /** The call is over and its result in the log: its checkpoint follows. Each `before` is followed by one. */
  after(call: EventId): void;
  /** Resolves when all checkpoints that were begun are in the log. */
  close(): Promise<void>;
}

/** The sandbox died while something ran in it, or before it could start. */
export class SandboxLost extends DroverError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('container', message, options);
  }
}

/** A program that stays has ended before it was asked: nothing was asked of it, so it may be asked of a new one. */
export class ProcessGone extends DroverError {
  constructor(end: ProcessEnd) {
    super('container', `The program in the sandbox has ended${end.reason ? ` (${end.reason})` : ''}.`);
  }
}

/** No sandbox could be provisioned. `message` says why and what to do. */
export class SandboxUnavailable extends DroverError {
  constructor(part: 'engine' | 'container', message: string, options?: { cause?: unknown }) {
    super(part, message, options);
  }
}
