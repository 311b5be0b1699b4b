import { z } from 'zod';
import { EnvironmentId } from './ids.ts';

/**
 * Where an environment's sandboxes come from.
 * `devcontainer`: the workspace folder's own devcontainer.json. `image`: a named container image.
 * `os`: the operating system's own sandbox, no container engine needed.
 */
export const EnvironmentConfig = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('devcontainer'),
    /** Path of the devcontainer.json inside the workspace folder; absent = the folder's default one. */
    path: z.string().optional(),
  }),
  z.object({ type: z.literal('image'), image: z.string().min(1) }),
  z.object({ type: z.literal('os') }),
]);
export type EnvironmentConfig = z.infer<typeof EnvironmentConfig>;

export const Environment = z.object({
  id: EnvironmentId,
  type: z.literal('environment'),
  name: z.string().min(1),
  description: z.string().nullish(),
  config: EnvironmentConfig,
  /** Memory in MiB, processors as a fraction, processes as a count; absent = the engine's default. */
  limits: z
    .object({
      memory_mib: z.number().int().positive().optional(),
      cpus: z.number().positive().optional(),
      pids: z.number().int().positive().optional(),
    })
    .optional(),
  created_at: z.string(),
  updated_at: z.string(),
  archived_at: z.string().nullable(),
});
export type Environment = z.infer<typeof Environment>;
