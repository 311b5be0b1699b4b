import type { Rehearsal as Server } from '../rehearsal/server.ts';

/** Time the rehearsal takes before and between the pieces of a reply, in ms: so that a person can follow it. */
const PACE = { firstTokenMs: 300, perChunkMs: 15 };

/** The rehearsal's model server, started in this process when it is first needed. */
export class Rehearsal {
  #server: Promise<Server> | undefined;

  /** Where it answers, on the loopback interface. */
  async url(): Promise<string> {
    this.#server ??= import('../rehearsal/server.ts').then((module) => module.startRehearsal({ delays: PACE }));
    return (await this.#server).url;
  }

  async close(): Promise<void> {
    await (await this.#server)?.close();
  }
}
