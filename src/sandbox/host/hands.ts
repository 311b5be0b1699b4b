import { mkdirSync } from 'node:fs';
import { realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../protocol/errors.ts';
import { mint, type SandboxId, type SessionId } from '../../protocol/ids.ts';
import type { Hands, Made } from '../hands.ts';
import { type Note, Noted } from '../noted.ts';
import { passedEnv } from '../passed-env.ts';
import type { ProviderOptions } from '../provider.ts';
import { type Cleaned, type SandboxOwner, SandboxUnavailable } from '../sandbox.ts';
import { HostSandbox } from './host-sandbox.ts';

const PROBE_MS = 20_000;
const DETAIL = 'this machine, without a sandbox';

/** Environments of type `host`: nothing holds what runs. Policy sees to it that a person is asked about each call. */
export class HostHands implements Hands {
  readonly #options: Pick<ProviderOptions, 'cacheFolder' | 'env'>;
  readonly #noted: Noted;
  readonly #open = new Map<SandboxId, HostSandbox>();

  constructor(options: Pick<ProviderOptions, 'cacheFolder' | 'env'>) {
    this.#options = options;
    this.#noted = new Noted(join(options.cacheFolder, 'host'));
  }

  recipe(): string {
    return DETAIL;
  }

  async make(owner: SandboxOwner, id: SandboxId): Promise<Made> {
    const sandbox = await this.#openOne(this.#noted.add(owner, id));
    try {
      await sandbox.run({
        executionId: mint.execution(),
        argv: ['true'],
        timeoutMs: PROBE_MS,
        signal: AbortSignal.timeout(PROBE_MS * 2),
      });
    } catch (error) {
      throw new SandboxUnavailable('container', `Nothing can be run on this machine itself: ${messageOf(error)}`, {
        cause: error,
      });
    }
    return { sandbox, detail: DETAIL };
  }

  async adopt(owner: SandboxOwner, id: SandboxId | undefined): Promise<Made | null> {
    const note = this.#noted.find(owner, id);
    if (!note) return null;
    const known = this.#open.has(note.sandbox);
    const sandbox = await this.#openOne(note);
    if (!known) await sandbox.endLeft();
    return { sandbox, detail: DETAIL };
  }

  async discard(_session: SessionId, id: SandboxId): Promise<void> {
    const note = this.#noted.all().find((one) => one.sandbox === id);
    if (note) await this.#remove(note).catch(() => undefined);
  }

  async removeAll(session: SessionId, keep?: (id: SandboxId) => boolean): Promise<SandboxId[]> {
    return await this.#removeNoted((note) => note.session === session && !keep?.(note.sandbox));
  }

  async reap(workspaceFolder: string, keep: ReadonlySet<SessionId>): Promise<number> {
    const removed = await this.#removeNoted((note) => note.workspace === workspaceFolder && !keep.has(note.session));
    return removed.length;
  }

  async cleanUp(workspaceFolder: string, keep: ReadonlySet<SessionId>): Promise<Cleaned> {
    return { sandboxes: await this.reap(workspaceFolder, keep), images: 0, others: 0, packages: 0 };
  }

  async diagnose(): Promise<string> {
    return 'This machine itself, without a sandbox: every call asks first.';
  }

  async dispose(): Promise<void> {
    await Promise.all([...this.#open.values()].map((sandbox) => sandbox.stopOpened('Drover was closed')));
    this.#open.clear();
  }

  async #openOne(note: Note): Promise<HostSandbox> {
    const known = this.#open.get(note.sandbox);
    if (known) return known;
    const folder = join(this.#noted.root, note.sandbox);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const sandbox = new HostSandbox({
      id: note.sandbox,
      workspace: await realpath(note.copy ?? note.workspace),
      folder,
      env: passedEnv(this.#options.env ?? process.env),
    });
    this.#open.set(note.sandbox, sandbox);
    return sandbox;
  }

  async #removeNoted(which: (note: Note) => boolean): Promise<SandboxId[]> {
    const notes = this.#noted.all().filter(which);
    for (const note of notes) await this.#remove(note);
    return notes.map((note) => note.sandbox);
  }

  async #remove(note: Note): Promise<void> {
    const sandbox = await this.#openOne(note).catch(() => undefined);
    await sandbox?.stopAll();
    this.#open.delete(note.sandbox);
    await rm(join(this.#noted.root, note.sandbox), { recursive: true, force: true, maxRetries: 3 });
    this.#noted.remove(note.sandbox);
  }
}
