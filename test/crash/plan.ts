import { z } from 'zod';

/*
 * What a host process is told, and what it tells back: its one argument is a plan as JSON, each line it prints is one
 * thing it has to say. Positions count from 1 and within one process.
 */

const Position = z.number().int().positive();

/** A moment in the life of a host. */
export const Where = z.discriminatedUnion('kind', [
  /** Right before a batch of records is handed to the log, or right after it became durable. */
  z.object({ kind: z.literal('append'), n: Position, when: z.enum(['before', 'after']) }),
  /** Right after the nth of the batches that have more than so many records. */
  z.object({ kind: z.literal('batch'), n: Position, records: z.number().int().min(1) }),
  /** So many ms after a call was recorded as started. */
  z.object({ kind: z.literal('running'), n: Position, ms: z.number() }),
  /** So many ms after a sandbox was announced. */
  z.object({ kind: z.literal('provisioning'), n: Position, ms: z.number() }),
  /** When the log asks for the time while a session is made or its lease is taken: between its files. */
  z.object({ kind: z.literal('opening'), n: Position }),
]);
export type Where = z.infer<typeof Where>;

/** What happens then. `reboot`: the container dies, and the host with it. */
export const Act = z.enum(['kill', 'kill_container', 'reboot', 'stop', 'fill_disk', 'restart_engine']);
export type Act = z.infer<typeof Act>;

export const Strike = z.object({ where: Where, act: Act });
export type Strike = z.infer<typeof Strike>;

export const Plan = z.object({
  /** Absolute paths; `cache` is outside the workspace. */
  workspace: z.string(),
  cache: z.string(),
  /** Where the rehearsal answers. */
  url: z.string(),
  image: z.string(),
  /** ms; default: the log's own. */
  leaseMs: z.number().optional(),
  /** ms before a request that failed is made again; default: the harness's own. */
  retryBaseMs: z.number().optional(),
  strike: Strike.optional(),
  /** The command that kills the engine and starts it again. */
  restart: z.array(z.string()).optional(),
});
export type Plan = z.infer<typeof Plan>;

export const Line = z.discriminatedUnion('said', [
  /** Records are durable, or as safe as was asked: their hashes and types. */
  z.object({ said: z.literal('appended'), hashes: z.array(z.string()), types: z.array(z.string()) }),
  /** So often was the clock asked while the session was opened. */
  z.object({ said: z.literal('opened'), clock: z.number() }),
  z.object({ said: z.literal('strikes') }),
  /** The log could not be written; the sentence a person reads. */
  z.object({ said: z.literal('paused'), message: z.string() }),
  /** Another process has the session now. */
  z.object({ said: z.literal('lost') }),
  z.object({ said: z.literal('done') }),
  z.object({ said: z.literal('failed'), message: z.string() }),
]);
export type Line = z.infer<typeof Line>;

/** Where a full disk is filled, below the sessions' folder. */
export const FILLER = 'filler';
