import { mkdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { ExecutionId } from '../../protocol/ids.ts';
import { type Egress, type EgressSession, type Gate, INSIDE } from '../../vault/egress.ts';
import { osDoor } from './runtime.ts';

/** The way out of one sandbox of the operating system: the runtime carries its connections to a door of ours. */
export class OsWayOut {
  readonly #gate: Gate;

  private constructor(gate: Gate) {
    this.#gate = gate;
  }

  /** `folder`: of the sandbox, where the certificates are put. */
  static async open(egress: Egress, session: EgressSession, folder: string): Promise<OsWayOut> {
    const door = await osDoor();
    const inside = join(folder, 'egress');
    // On Linux the runtime listens inside, at the usual port; elsewhere inside and outside are the same loopback.
    const port = process.platform === 'linux' ? INSIDE.port : door.port;
    const gate = await egress.open({ ...session, inside: { folder: inside, port } });
    await mkdir(inside, { recursive: true });
    for (const { path, content } of gate.files) await writeFile(join(inside, basename(path)), content);
    door.add(gate);
    return new OsWayOut(gate);
  }

  /** Variables of one call. */
  envFor(execution: ExecutionId): Record<string, string> {
    return { ...this.#gate.env, ...this.#gate.envFor(execution) };
  }

  actFor(server: ExecutionId, call: ExecutionId): () => void {
    return this.#gate.actFor(server, call);
  }

  settle(execution: ExecutionId): Promise<void> {
    return this.#gate.settle(execution);
  }

  async close(): Promise<void> {
    (await osDoor()).remove(this.#gate);
    await this.#gate.close();
  }
}
