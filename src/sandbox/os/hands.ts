import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, realpath, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Environment } from '../../protocol/environment.ts';
import { mint, SandboxId, SessionId } from '../../protocol/ids.ts';
import type { Hands, Made } from '../hands.ts';
import type { ProviderOptions } from '../provider.ts';
import { type Cleaned, type SandboxOwner, SandboxUnavailable } from '../sandbox.ts';
import { workFolder } from '../work-folder.ts';
import { reapBridges } from './bridges.ts';
import { Leftovers } from './leftovers.ts';
import { OsSandbox } from './os-sandbox.ts';
import { endOsRuntime, osRuntime, type RuntimeOptions } from './runtime.ts';

/** Kept beside a sandbox's folder, out of its reach: what labels are to a container. */
const Note = z.object({
  session: SessionId,
  sandbox: SandboxId,
  workspace: z.string(),
  /** The session's own copy, where it works in one. */
  copy: z.string().optional(),
});
type Note = z.infer<typeof Note>;
const PROBE_MS = 20_000;

const detail = (): string => (process.platform === 'darwin' ? 'Seatbelt' : 'bubblewrap');

/** Sandboxes of the operating system: bubblewrap on Linux, Seatbelt on macOS. */
export class OsHands implements Hands {
  readonly #options: ProviderOptions;
  readonly #root: string;
  readonly #runtime: RuntimeOptions;
  readonly #open = new Map<SandboxId, OsSandbox>();

  constructor(options: ProviderOptions) {
    this.#options = options;
    this.#root = join(options.cacheFolder, 'os');
    this.#runtime = { bridges: join(options.cacheFolder, 'os-bridges'), seccompHelper: options.seccompHelper };
  }

  recipe(): string {
    return 'operating system sandbox';
  }

  async make(owner: SandboxOwner, id: SandboxId): Promise<Made> {
    await osRuntime(this.#runtime);
    const folder = join(this.#root, id);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const works = workFolder(owner);
    const copy = works === owner.workspaceFolder ? {} : { copy: works };
    const note: Note = { session: owner.session, sandbox: id, workspace: owner.workspaceFolder, ...copy };
    await writeFile(join(this.#root, `${id}.json`), JSON.stringify(note));
    const sandbox = await this.#openSandbox(note);
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
    const ofOwner = (note: Note) => note.session === owner.session && note.workspace === owner.workspaceFolder;
    const note = this.#notes().find((one) => ofOwner(one) && (!id || one.sandbox === id));
    return note ? { sandbox: await this.#openSandbox(note), detail: detail() } : null;
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
    return { sandboxes: await this.reap(workspaceFolder, keep), images: 0, others: 0 };
  }

  async diagnose(_environment: Environment): Promise<string> {
    await osRuntime(this.#runtime);
    return `The sandbox of the operating system (${detail()}), without network.`;
  }

  async dispose(): Promise<void> {
    for (const sandbox of this.#open.values()) sandbox.stopAll();
    await endOsRuntime(this.#runtime);
  }

  async #openSandbox(note: Note): Promise<OsSandbox> {
    const known = this.#open.get(note.sandbox);
    if (known) return known;
    const sandbox = new OsSandbox({
      id: note.sandbox,
      // Rules of the operating system are about real paths.
      workspace: await realpath(note.copy ?? note.workspace),
      ...(note.copy ? { original: await realpath(note.workspace) } : {}),
      folder: join(await realpath(this.#root), note.sandbox),
      notes: join(this.#root, `${note.sandbox}.run`),
      runtime: this.#runtime,
      env: this.#options.env ?? process.env,
    });
    this.#open.set(note.sandbox, sandbox);
    return sandbox;
  }

  #notes(): Note[] {
    let names: string[];
    try {
      names = readdirSync(this.#root);
    } catch {
      return [];
    }
    return names.flatMap((name) => {
      try {
        const note = Note.parse(JSON.parse(readFileSync(join(this.#root, name), 'utf8')));
        return name === `${note.sandbox}.json` ? note : [];
      } catch {
        // A sandbox's folder, or a note that a process died over: nothing ever ran in that one.
        return [];
      }
    });
  }

  async #removeNoted(which: (note: Note) => boolean): Promise<SandboxId[]> {
    const notes = this.#notes().filter(which);
    for (const note of notes) await this.#remove(note.sandbox);
    return notes.map((note) => note.sandbox);
  }

  async #remove(id: SandboxId): Promise<void> {
    this.#open.get(id)?.stopAll();
    this.#open.delete(id);
    new Leftovers(join(this.#root, `${id}.run`)).endAll();
    await rm(join(this.#root, id), { recursive: true, force: true });
    await rm(join(this.#root, `${id}.json`), { force: true });
  }
}
