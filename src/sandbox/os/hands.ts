import { mkdir, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Environment } from '../../protocol/environment.ts';
import { mint, type SandboxId, type SessionId } from '../../protocol/ids.ts';
import { egressSession } from '../egress-session.ts';
import { GuardNotes } from '../guard-notes.ts';
import type { Hands, Made } from '../hands.ts';
import { type Note, Noted } from '../noted.ts';
import type { ProviderOptions } from '../provider.ts';
import { type Cleaned, type SandboxOwner, SandboxUnavailable } from '../sandbox.ts';
import { workFolder } from '../work-folder.ts';
import { reapBridges } from './bridges.ts';
import { Leftovers } from './leftovers.ts';
import { OsSandbox } from './os-sandbox.ts';
import { endOsRuntime, osRuntime, type RuntimeOptions } from './runtime.ts';
import { OsWayOut } from './way-out.ts';

const PROBE_MS = 20_000;

const detail = (): string => (process.platform === 'darwin' ? 'Seatbelt' : 'bubblewrap');

/** Sandboxes of the operating system: bubblewrap on Linux, Seatbelt on macOS. */
export class OsHands implements Hands {
  readonly #options: ProviderOptions;
  readonly #noted: Noted;
  readonly #guards: GuardNotes;
  readonly #runtime: RuntimeOptions;
  readonly #owners: ReadonlyMap<SessionId, SandboxOwner>;
  readonly #open = new Map<SandboxId, OsSandbox>();
  readonly #ways = new Map<SandboxId, OsWayOut>();

  /** `owners`: who asked last for each session's sandbox. */
  constructor(options: ProviderOptions, owners: ReadonlyMap<SessionId, SandboxOwner>) {
    this.#options = options;
    this.#owners = owners;
    this.#guards = new GuardNotes(options.cacheFolder);
    this.#noted = new Noted(join(options.cacheFolder, 'os'));
    this.#runtime = { bridges: join(options.cacheFolder, 'os-bridges'), seccompHelper: options.seccompHelper };
  }

  recipe(): string {
    return 'operating system sandbox';
  }

  async make(owner: SandboxOwner, id: SandboxId): Promise<Made> {
    await osRuntime(this.#runtime);
    // Held anew by each call; noted so that what stands in for missing files goes with the sandbox.
    this.#guards.prepare(id, workFolder(owner));
    const sandbox = await this.#openSandbox(this.#noted.add(owner, id), owner);
    const probe = await sandbox.run({
      executionId: mint.execution(),
      argv: ['sh', '-c', 'true'],
      timeoutMs: PROBE_MS,
      signal: AbortSignal.timeout(PROBE_MS * 2),
    });
    if (probe.exitCode !== 0)
      throw new SandboxUnavailable(
        'container',
        `The operating system's sandbox can't run a command (${Buffer.from(probe.stderr).toString('utf8').trim()}); start Docker and use another environment.`,
      );
    return { sandbox, detail: detail() };
  }

  async adopt(owner: SandboxOwner, id: SandboxId | undefined): Promise<Made | null> {
    const note = this.#noted.find(owner, id);
    return note ? { sandbox: await this.#openSandbox(note, owner), detail: detail() } : null;
  }

  async discard(_session: SessionId, id: SandboxId): Promise<void> {
    await this.#remove(id).catch(() => {});
  }

  async removeAll(session: SessionId, keep?: (id: SandboxId) => boolean): Promise<SandboxId[]> {
    return await this.#removeNoted((note) => note.session === session && !keep?.(note.sandbox));
  }

  async reap(workspaceFolder: string, keep: ReadonlySet<SessionId>): Promise<number> {
    reapBridges(this.#runtime.bridges);
    const removed = await this.#removeNoted((note) => note.workspace === workspaceFolder && !keep.has(note.session));
    return removed.length;
  }

  async cleanUp(workspaceFolder: string, keep: ReadonlySet<SessionId>): Promise<Cleaned> {
    return { sandboxes: await this.reap(workspaceFolder, keep), images: 0, others: 0, packages: 0 };
  }

  async diagnose(_environment: Environment): Promise<string> {
    await osRuntime(this.#runtime);
    return `The sandbox of the operating system (${detail()}).`;
  }

  async dispose(): Promise<void> {
    await Promise.all([...this.#open.values()].map((sandbox) => sandbox.stopOpened('Drover was closed')));
    for (const sandbox of this.#open.values()) sandbox.stopAll();
    await Promise.allSettled([...this.#ways.values()].map((wayOut) => wayOut.close()));
    await endOsRuntime(this.#runtime);
  }

  async #openSandbox(note: Note, owner: SandboxOwner): Promise<OsSandbox> {
    const known = this.#open.get(note.sandbox);
    if (known) return known;
    await mkdir(join(this.#noted.root, note.sandbox), { recursive: true, mode: 0o700 });
    const folder = join(await realpath(this.#noted.root), note.sandbox);
    const wayOut = await this.#openWayOut(note, owner, folder);
    const sandbox = new OsSandbox({
      id: note.sandbox,
      // Rules of the operating system are about real paths.
      workspace: await realpath(note.copy ?? note.workspace),
      ...(note.copy ? { original: await realpath(note.workspace) } : {}),
      folder,
      wayOut,
      notes: join(this.#noted.root, `${note.sandbox}.run`),
      opened: join(this.#noted.root, `${note.sandbox}.open`),
      runtime: this.#runtime,
      env: this.#options.env ?? process.env,
    });
    this.#open.set(note.sandbox, sandbox);
    return sandbox;
  }

  async #openWayOut(note: Note, owner: SandboxOwner, folder: string): Promise<OsWayOut | undefined> {
    const { egress } = this.#options;
    if (!egress) return undefined;
    const wayOut = await OsWayOut.open(egress, egressSession(owner, this.#owners), folder);
    this.#ways.set(note.sandbox, wayOut);
    return wayOut;
  }

  async #removeNoted(which: (note: Note) => boolean): Promise<SandboxId[]> {
    const notes = this.#noted.all().filter(which);
    for (const note of notes) await this.#remove(note.sandbox);
    return notes.map((note) => note.sandbox);
  }

  async #remove(id: SandboxId): Promise<void> {
    this.#open.get(id)?.stopAll();
    await this.#ways.get(id)?.close();
    this.#ways.delete(id);
    this.#open.delete(id);
    for (const kind of ['run', 'open']) new Leftovers(join(this.#noted.root, `${id}.${kind}`)).endAll();
    await rm(join(this.#noted.root, id), { recursive: true, force: true });
    this.#noted.remove(id);
    this.#guards.forget(id);
  }
}
