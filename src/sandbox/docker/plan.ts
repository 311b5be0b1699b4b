import type Docker from 'dockerode';
import type { Environment } from '../../protocol/environment.ts';
import type { SandboxId } from '../../protocol/ids.ts';
import type { GuardedPath } from '../guard-rails.ts';
import type { SandboxOwner } from '../sandbox.ts';
import { LABEL, labelsFor } from './labels.ts';

/** The network a container is made with: its own loopback and nothing else. What gets out goes through its way out. */
export const NO_NETWORK = 'none';

/** A place in the container that is not of its image. */
export type PlannedMount =
  | { type: 'bind'; source: string; target: string; readOnly: boolean }
  | { type: 'volume'; source: string; target: string }
  /** Empty and not to be written to. */
  | { type: 'empty'; target: string };

/**
 * All that a sandbox's container is made with beyond its image, however it is made: every option that a sandbox's
 * promises rest on stands here, once. The renderers below say it in the three forms there are to say it in.
 */
export interface CreationPlan {
  labels: Readonly<Record<string, string>>;
  env: Readonly<Record<string, string>>;
  mounts: readonly PlannedMount[];
  /** A network's name; undefined = the engine's own. */
  network: string | undefined;
  limits: NonNullable<Environment['limits']>;
  /** Podman without root: the user outside is the same user inside. */
  keepUserId: boolean;
  /** Podman fills an empty place with a copy of what it covers, unless it is told not to. */
  copiesUp: boolean;
}

/** The work folder at `target`, with its guard rails over it. */
export function bindMounts(folder: string, target: string, guarded: readonly GuardedPath[]): PlannedMount[] {
  const over = guarded.map(({ path, how }): PlannedMount => {
    const inside = `${target}/${path}`;
    if (how === 'hidden') return { type: 'empty', target: inside };
    return { type: 'bind', source: `${folder}/${path}`, target: inside, readOnly: how === 'read_only' };
  });
  return [{ type: 'bind', source: folder, target, readOnly: false }, ...over];
}

export interface PlanInput {
  owner: SandboxOwner;
  id: SandboxId;
  /** Where the workspace is inside. */
  target: string;
  mounts: readonly PlannedMount[];
  engine: { kind: 'docker' | 'podman'; rootless: boolean };
  /** Absent: there is none. */
  way: { env: Readonly<Record<string, string>>; mount: PlannedMount | undefined } | undefined;
}

export function planFor({ owner, id, target, mounts, engine, way }: PlanInput): CreationPlan {
  return {
    labels: { ...labelsFor(owner, id), [LABEL.inside]: target },
    env: way?.env ?? {},
    mounts: way?.mount ? [...mounts, way.mount] : mounts,
    network: NO_NETWORK,
    limits: owner.environment.limits ?? {},
    keepUserId: engine.kind === 'podman' && engine.rootless,
    copiesUp: engine.kind === 'podman',
  };
}

const MIB = 1024 * 1024;
const EMPTY = 'ro,notmpcopyup';

/** For the engine's own interface. Swap equal to memory means none on top of it. */
export function createOptions(plan: CreationPlan): Docker.ContainerCreateOptions {
  const { memory_mib, cpus, pids } = plan.limits;
  const empty = plan.copiesUp ? plan.mounts.filter(({ type }) => type === 'empty') : [];
  return {
    Labels: { ...plan.labels },
    Env: Object.entries(plan.env).map(([name, value]) => `${name}=${value}`),
    HostConfig: {
      Init: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Mounts: plan.mounts.filter((mount) => !empty.includes(mount)).map(mountSettings),
      ...(empty.length > 0 ? { Tmpfs: Object.fromEntries(empty.map(({ target }) => [target, EMPTY])) } : {}),
      ...(plan.network === undefined ? {} : { NetworkMode: plan.network }),
      ...(plan.keepUserId ? { UsernsMode: 'keep-id' } : {}),
      ...(memory_mib === undefined ? {} : { Memory: memory_mib * MIB, MemorySwap: memory_mib * MIB }),
      ...(cpus === undefined ? {} : { NanoCpus: Math.round(cpus * 1e9) }),
      ...(pids === undefined ? {} : { PidsLimit: pids }),
    },
  };
}

function mountSettings(mount: PlannedMount): Docker.MountSettings {
  if (mount.type === 'empty') return { Type: 'tmpfs', Source: '', Target: mount.target, ReadOnly: true };
  if (mount.type === 'volume') return { Type: 'volume', Source: mount.source, Target: mount.target };
  return { Type: 'bind', Source: mount.source, Target: mount.target, ReadOnly: mount.readOnly };
}

/** For `docker run`, as the `runArgs` of a devcontainer.json. */
export function runArgs(plan: CreationPlan): string[] {
  const { memory_mib, cpus, pids } = plan.limits;
  return [
    '--cap-drop=ALL',
    '--security-opt=no-new-privileges',
    ...Object.entries(plan.labels).map(([name, value]) => `--label=${name}=${value}`),
    ...Object.entries(plan.env).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
    ...(plan.network === undefined ? [] : [`--network=${plan.network}`]),
    ...(plan.keepUserId ? ['--userns=keep-id'] : []),
    ...(memory_mib === undefined ? [] : [`--memory=${memory_mib}m`, `--memory-swap=${memory_mib}m`]),
    ...(cpus === undefined ? [] : [`--cpus=${cpus}`]),
    ...(pids === undefined ? [] : [`--pids-limit=${pids}`]),
    ...plan.mounts.flatMap((mount) =>
      plan.copiesUp && mount.type === 'empty'
        ? ['--tmpfs', `${mount.target}:${EMPTY}`]
        : ['--mount', mountArgument(mount)],
    ),
  ];
}

/** One value of `--mount`: fields of a line of comma-separated values. */
export function mountArgument(mount: PlannedMount): string {
  if (mount.type === 'empty') return fields(['type=tmpfs', `target=${mount.target}`, 'readonly']);
  const readOnly = mount.type === 'bind' && mount.readOnly ? ['readonly'] : [];
  return fields([`type=${mount.type}`, `source=${mount.source}`, `target=${mount.target}`, ...readOnly]);
}

const fields = (all: string[]): string =>
  all.map((field) => (/[",]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)).join(',');

/** For one service of a Compose file; its network is the one that the services share. A `$` would be read as a variable there. */
export function composeService(plan: CreationPlan): Record<string, unknown> & { volumes: unknown[] } {
  const { memory_mib, cpus, pids } = plan.limits;
  const text = (value: string) => value.replaceAll('$', '$$$$');
  const texts = (values: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, text(value)]));
  return {
    cap_drop: ['ALL'],
    security_opt: ['no-new-privileges'],
    init: true,
    labels: texts(plan.labels),
    environment: texts(plan.env),
    ...(plan.keepUserId ? { userns_mode: 'keep-id' } : {}),
    ...(memory_mib === undefined ? {} : { mem_limit: `${memory_mib}m`, memswap_limit: `${memory_mib}m` }),
    ...(cpus === undefined ? {} : { cpus }),
    ...(pids === undefined ? {} : { pids_limit: pids }),
    volumes: plan.mounts.map((mount) =>
      mount.type === 'empty'
        ? { type: 'tmpfs', target: text(mount.target), read_only: true }
        : {
            type: mount.type,
            source: text(mount.source),
            target: text(mount.target),
            read_only: mount.type === 'bind' && mount.readOnly,
          },
    ),
  };
}
