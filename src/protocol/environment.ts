import { z } from 'zod';
import { EnvironmentId } from './ids.ts';

/** Installed when the sandbox is made, one manager after the other in this order. Entries are in the manager's own syntax. */
export const Packages = z.object({
  apt: z.array(z.string().min(1)).optional(),
  cargo: z.array(z.string().min(1)).optional(),
  gem: z.array(z.string().min(1)).optional(),
  go: z.array(z.string().min(1)).optional(),
  npm: z.array(z.string().min(1)).optional(),
  pip: z.array(z.string().min(1)).optional(),
});
export type Packages = z.infer<typeof Packages>;

/** Where the sandbox may connect to. It governs the sandbox alone, not the harness. */
export const Networking = z.discriminatedUnion('type', [
  z.object({ type: z.literal('unrestricted') }),
  z.object({
    type: z.literal('limited'),
    /** Bare host names, or `*.` and a domain for all hosts below it; `name:port` where it is neither 80 nor 443. */
    allowed_hosts: z.array(z.string().min(1)),
    /** The registries of the usual package managers. Absent = false. */
    allow_package_managers: z.boolean().optional(),
    /** The MCP servers the agent names. Absent = false. */
    allow_mcp_servers: z.boolean().optional(),
  }),
  z.object({ type: z.literal('none') }),
]);
export type Networking = z.infer<typeof Networking>;

const inside = { packages: Packages.optional(), networking: Networking.optional() };

/**
 * Where an environment's sandboxes come from.
 * `devcontainer`: the workspace folder's own devcontainer.json. `image`: a named container image.
 * `os`: the operating system's own sandbox, no container engine needed. `host`: no sandbox at all; every call asks.
 */
export const EnvironmentConfig = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('devcontainer'),
    /** Path of the devcontainer.json inside the workspace folder; absent = the folder's default one. */
    path: z.string().optional(),
    ...inside,
  }),
  z.object({ type: z.literal('image'), image: z.string().min(1), ...inside }),
  z.object({ type: z.literal('os'), networking: Networking.optional() }),
  z.object({ type: z.literal('host') }),
]);
export type EnvironmentConfig = z.infer<typeof EnvironmentConfig>;

/** `bind`: the session works in the workspace folder itself. `isolated`: on a copy of its own, applied when a person says so. */
export const WorkspaceMode = z.enum(['bind', 'isolated']);
export type WorkspaceMode = z.infer<typeof WorkspaceMode>;

/** `session`: one sandbox for all calls. `call`: a fresh one for each, dead after it; only the workspace stays. */
export const SandboxLifetime = z.enum(['session', 'call']);
export type SandboxLifetime = z.infer<typeof SandboxLifetime>;

export const Environment = z.object({
  id: EnvironmentId,
  type: z.literal('environment'),
  name: z.string().min(1),
  description: z.string().nullish(),
  config: EnvironmentConfig,
  /** Absent = `bind`. */
  workspace: WorkspaceMode.optional(),
  /** Absent = `session`. */
  lifetime: SandboxLifetime.optional(),
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
