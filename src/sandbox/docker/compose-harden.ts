import { isAbsolute, resolve } from 'node:path';
import { z } from 'zod';
import { SandboxUnavailable } from '../sandbox.ts';
import { isInside, type MountCheck } from './devcontainer-harden.ts';
import { type CreationPlan, composeService } from './plan.ts';

const Volume = z.union([
  z.string(),
  z.looseObject({ type: z.string().optional(), source: z.string().optional(), target: z.string() }),
]);
const Build = z.union([
  z.string(),
  z.looseObject({
    context: z.string().optional(),
    dockerfile: z.string().optional(),
    args: z.unknown().optional(),
    target: z.string().optional(),
  }),
]);
const Service = z.looseObject({ build: Build.optional(), volumes: z.array(Volume).optional() });

/** A Compose file, variables filled in and files merged, as `config` prints it. */
export const ComposeFile = z.looseObject({
  services: z.record(z.string(), Service),
  volumes: z.record(z.string(), z.unknown()).nullish(),
});
type ComposeFile = z.infer<typeof ComposeFile>;
type Service = z.infer<typeof Service>;

/** What of a service opens nothing; all else is left out. */
const KEPT = new Set(
  `image command entrypoint environment depends_on healthcheck working_dir user hostname shm_size tmpfs expose
  stop_signal stop_grace_period read_only platform ulimits labels`.split(/\s+/),
);
/** Ours to say, or without meaning for a sandbox: not worth a word. */
const OURS = new Set(
  'build volumes networks init cap_drop mem_limit memswap_limit cpus pids_limit container_name restart profiles'.split(
    ' ',
  ),
);
/** Services of images that start as root and become another user, such as databases, need the other capabilities. */
const DROPPED_BESIDE = ['NET_RAW', 'MKNOD', 'SYS_CHROOT', 'AUDIT_WRITE', 'SETFCAP', 'NET_BIND_SERVICE'];

export interface ComposeInput {
  file: ComposeFile;
  /** The service the sandbox is. */
  service: string;
  folder: string;
  mountable: MountCheck;
  planAt(target: string): CreationPlan;
  /** Where the folder is if the file does not mount it. */
  usualTarget: string;
}

export interface HardenedCompose {
  file: Record<string, unknown>;
  target: string;
  leftOut: string[];
}

/** The same services without what would open the host, on a network of their own that leads nowhere. */
export function hardenComposeFile(input: ComposeInput): HardenedCompose {
  const { file, service: main, folder, mountable } = input;
  const leftOut: string[] = [];
  const asked = file.services[main];
  if (!asked)
    throw new SandboxUnavailable(
      'container',
      `devcontainer.json names the service "${main}", which its Compose file does not have; it has ${Object.keys(file.services).join(', ')}.`,
    );
  const target = targetOf(asked, folder) ?? input.usualTarget;
  const plan = input.planAt(target);
  const labels = Object.fromEntries(Object.entries(plan.labels).filter(([name]) => name !== 'drover.inside'));
  // The copy of the workspace, on an engine that does not see the folder, is there already.
  const copies = plan.mounts.flatMap((mount) => (mount.type === 'volume' ? [mount.source] : []));
  const unseen = copies.length > 0 ? ' (the engine does not see this folder)' : '';
  const services = Object.entries(file.services).map(([name, service]) => {
    const kept = { ...keptOf(name, service, leftOut), ...buildOf(name, service, folder) };
    const own = (service.volumes ?? []).filter((volume) => volumeAllowed(volume, mountable));
    for (const volume of service.volumes ?? [])
      if (!own.includes(volume) && !(name === main && isFolder(volume, folder)))
        leftOut.push(
          `the volume ${typeof volume === 'string' ? volume : (volume.source ?? volume.target)} of ${name}${unseen}`,
        );
    if (name !== main) return [name, { ...kept, ...beside(plan, labels), volumes: own }];
    const { volumes, environment, ...ours } = composeService(plan);
    const env = { ...environmentOf(kept.environment), ...environmentOf(environment) };
    return [name, { ...kept, ...ours, environment: env, networks: ['default'], volumes: [...own, ...volumes] }];
  });
  const own = Object.keys(file.volumes ?? {}).map((name) => [name, { labels }]);
  const volumes = [...own, ...copies.map((name) => [name, { external: true, name }])];
  return {
    target,
    leftOut,
    file: {
      services: Object.fromEntries(services),
      networks: { default: { ...NOWHERE, labels } },
      ...(volumes.length > 0 ? { volumes: Object.fromEntries(volumes) } : {}),
    },
  };
}

/** The services see one another, but neither the host nor anything beyond it. */
const NOWHERE = { internal: true, driver_opts: { 'com.docker.network.bridge.inhibit_ipv4': 'true' } };

function beside(plan: CreationPlan, labels: Record<string, string>): Record<string, unknown> {
  const { volumes: _, environment: __, ...ours } = composeService({ ...plan, labels });
  return { ...ours, cap_drop: DROPPED_BESIDE, networks: ['default'] };
}

function keptOf(name: string, service: Service, leftOut: string[]): Record<string, unknown> {
  const left = Object.keys(service).filter((key) => !KEPT.has(key) && !OURS.has(key) && service[key] !== undefined);
  leftOut.push(...left.map((key) => `${key} of the service ${name}`));
  return Object.fromEntries(Object.entries(service).filter(([key]) => KEPT.has(key)));
}

function buildOf(name: string, { build }: Service, folder: string): Record<string, unknown> {
  if (build === undefined) return {};
  const { context = '.', dockerfile, args, target } = typeof build === 'string' ? { context: build } : build;
  const at = resolve(folder, context);
  const file = dockerfile === undefined ? at : resolve(at, dockerfile);
  if (!isInside(folder, at) || !isInside(folder, file))
    throw new SandboxUnavailable(
      'container',
      `The service ${name} is built from ${context}, which lies outside this folder, so it is not read; move what the build needs into the folder.`,
    );
  const kept = {
    context: at,
    ...(dockerfile ? { dockerfile } : {}),
    ...(args ? { args } : {}),
    ...(target ? { target } : {}),
  };
  // Under a name of the person's own it would take that name away from another image.
  return { build: kept, image: undefined };
}

function volumeAllowed(volume: z.infer<typeof Volume>, mountable: MountCheck): boolean {
  const { type, source } = longForm(volume);
  if (type === 'tmpfs') return true;
  if (type === 'volume') return source === undefined || !/[/\\]/.test(source);
  return type === 'bind' && source !== undefined && mountable(source);
}

const isFolder = (volume: z.infer<typeof Volume>, folder: string): boolean => {
  const { type, source } = longForm(volume);
  return type === 'bind' && source !== undefined && resolve(source) === resolve(folder);
};

/** Where the service has this folder, if it does. */
function targetOf(service: Service, folder: string): string | undefined {
  const mounted = service.volumes?.find((volume) => isFolder(volume, folder));
  return mounted === undefined ? undefined : longForm(mounted).target.replace(/(.)\/+$/, '$1');
}

function longForm(volume: z.infer<typeof Volume>): { type: string; source?: string; target: string } {
  if (typeof volume !== 'string') {
    const { type = 'volume', source, target } = volume;
    return { type, target, ...(source === undefined ? {} : { source }) };
  }
  const parts = /^((?:[A-Za-z]:[\\/])?[^:]*)(?::([^:]*))?(?::[^:]*)?$/.exec(volume);
  const [, first = volume, second] = parts ?? [];
  if (second === undefined) return { type: 'volume', target: first };
  return { type: isAbsolute(first) || /^[.~]/.test(first) ? 'bind' : 'volume', source: first, target: second };
}

function environmentOf(value: unknown): Record<string, unknown> {
  if (Array.isArray(value))
    return Object.fromEntries(
      value.map(String).map((entry): [string, string] => {
        const at = entry.indexOf('=');
        return at === -1 ? [entry, ''] : [entry.slice(0, at), entry.slice(at + 1)];
      }),
    );
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
