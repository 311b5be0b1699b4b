import type { EnvironmentConfig, Packages, SandboxLifetime, WorkspaceMode } from '../../src/protocol/environment.ts';
import type { EnvironmentDefinition, FieldProblem } from '../../src/protocol/environment-rules.ts';

export type Kind = EnvironmentConfig['type'];
export type Manager = keyof Packages;
export const MANAGERS: readonly Manager[] = ['apt', 'cargo', 'gem', 'go', 'npm', 'pip'];

/** The form's fields as they are typed. What the chosen kind does not have is kept, in case it is chosen again. */
export interface Draft {
  name: string;
  description: string;
  kind: Kind;
  image: string;
  path: string;
  workspace: WorkspaceMode;
  lifetime: SandboxLifetime;
  /** `usual`: nothing is said. */
  network: 'usual' | 'none' | 'limited' | 'unrestricted';
  /** One in a line. */
  hosts: string;
  packageManagers: boolean;
  mcpServers: boolean;
  memory: string;
  cpus: string;
  pids: string;
  /** One entry in a line. */
  packages: Readonly<Record<Manager, string>>;
}

export function draftOf(definition: EnvironmentDefinition): Draft {
  const { config, limits } = definition;
  const networking = 'networking' in config ? config.networking : undefined;
  const limited = networking?.type === 'limited' ? networking : undefined;
  const packages = config.type === 'image' ? config.packages : undefined;
  const text = (value: number | undefined) => (value === undefined ? '' : String(value));
  const lines = (manager: Manager) => (packages?.[manager] ?? []).join('\n');
  return {
    name: definition.name,
    description: definition.description ?? '',
    kind: config.type,
    image: config.type === 'image' ? config.image : '',
    path: config.type === 'devcontainer' ? (config.path ?? '') : '',
    workspace: definition.workspace ?? 'bind',
    lifetime: definition.lifetime ?? 'session',
    network: networking?.type ?? 'usual',
    hosts: (limited?.allowed_hosts ?? []).join('\n'),
    packageManagers: limited?.allow_package_managers ?? false,
    mcpServers: limited?.allow_mcp_servers ?? false,
    memory: text(limits?.memory_mib),
    cpus: text(limits?.cpus),
    pids: text(limits?.pids),
    packages: {
      apt: lines('apt'),
      cargo: lines('cargo'),
      gem: lines('gem'),
      go: lines('go'),
      npm: lines('npm'),
      pip: lines('pip'),
    },
  };
}

/** What the draft says, with nothing in it that was left empty. It may be wrong: the host says how. */
export function definitionOf(draft: Draft): unknown {
  const limits = draft.kind === 'os' || draft.kind === 'host' ? {} : given(limitsOf(draft));
  return given({
    name: draft.name.trim(),
    description: draft.description.trim() || undefined,
    config: configOf(draft),
    workspace: draft.workspace === 'bind' ? undefined : draft.workspace,
    lifetime: draft.lifetime === 'session' ? undefined : draft.lifetime,
    limits: Object.keys(limits).length > 0 ? limits : undefined,
  });
}

function configOf(draft: Draft): unknown {
  const { kind } = draft;
  if (kind === 'host') return { type: kind };
  const networking = networkingOf(draft);
  if (kind === 'os') return given({ type: kind, networking });
  if (kind === 'devcontainer') return given({ type: kind, path: draft.path.trim() || undefined, networking });
  const packages = given(
    Object.fromEntries(MANAGERS.map((manager) => [manager, linesOf(draft.packages[manager])] as const)),
  );
  const some = Object.values(packages).some((entries) => entries !== undefined);
  return given({ type: kind, image: draft.image.trim(), packages: some ? packages : undefined, networking });
}

function networkingOf(draft: Draft): unknown {
  if (draft.network === 'usual') return undefined;
  if (draft.network !== 'limited') return { type: draft.network };
  return given({
    type: 'limited',
    allowed_hosts: linesOf(draft.hosts) ?? [],
    allow_package_managers: draft.packageManagers || undefined,
    allow_mcp_servers: draft.mcpServers || undefined,
  });
}

const limitsOf = ({ memory, cpus, pids }: Draft) => ({
  memory_mib: numberIn(memory),
  cpus: numberIn(cpus),
  pids: numberIn(pids),
});

/** Text that is no number stays as it is: that it is none is for the rules to say. */
function numberIn(text: string): number | string | undefined {
  const trimmed = text.trim();
  if (trimmed === '') return undefined;
  return /^[+-]?\d*\.?\d+$/.test(trimmed) ? Number(trimmed) : trimmed;
}

function linesOf(text: string): string[] | undefined {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  return lines.length > 0 ? lines : undefined;
}

function given<T extends object>(value: T): Partial<T> {
  const kept: Partial<T> = {};
  for (const key in value) if (value[key] !== undefined) kept[key] = value[key];
  return kept;
}

/** What stands beside a field: problems of it and of what is below it. */
export const problemsOf = (problems: readonly FieldProblem[], field: string): readonly FieldProblem[] =>
  problems.filter((one) => one.field === field || one.field.startsWith(`${field}.`));

/** What is beside no field of `shown`, and so has to be said for itself. */
export const restOf = (problems: readonly FieldProblem[], shown: readonly string[]): readonly FieldProblem[] =>
  problems.filter((one) => !shown.some((field) => one.field === field || one.field.startsWith(`${field}.`)));
