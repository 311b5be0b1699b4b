import type { z } from 'zod';
import { Environment, type EnvironmentConfig, type Networking } from './environment.ts';

/** What defines an environment; `Environment` is this plus what the catalog adds. */
export const EnvironmentDefinition = Environment.omit({
  id: true,
  type: true,
  created_at: true,
  updated_at: true,
  archived_at: true,
});
export type EnvironmentDefinition = z.infer<typeof EnvironmentDefinition>;

/** What is wrong with one field, in words that stand beside it. */
export interface FieldProblem {
  /** As in `config.packages.npm.0`. Empty: the whole. */
  field: string;
  message: string;
}

/**
 * Everything that is wrong with a definition, in the order of its fields; empty if it can be saved.
 * @param taken names of the folder's other environments
 */
export function environmentProblems(value: unknown, taken: readonly string[]): FieldProblem[] {
  const parsed = EnvironmentDefinition.safeParse(value);
  const problems = parsed.success ? [] : parsed.error.issues.map(fieldProblem);
  if (parsed.success) {
    problems.push(...nameProblems(parsed.data.name, taken), ...configProblems(parsed.data.config));
    problems.push(...combinations(parsed.data));
  }
  return [...problems, ...unknownFields(value)];
}

/** The definition, without fields that only the catalog sets. */
export function definitionOf(environment: Environment): EnvironmentDefinition {
  return EnvironmentDefinition.parse(environment);
}

function fieldProblem(issue: z.core.$ZodIssue): FieldProblem {
  const field = issue.path.join('.');
  if (issue.code === 'invalid_type') return { field, message: `This must be ${article(issue.expected)}.` };
  if (issue.code === 'too_small')
    return { field, message: issue.origin === 'string' ? 'This must not be empty.' : 'This must be more than 0.' };
  return { field, message: `${issue.message}.` };
}

const article = (expected: string): string => (/^[aeio]/.test(expected) ? `an ${expected}` : `a ${expected}`);

function nameProblems(name: string, taken: readonly string[]): FieldProblem[] {
  if (name.trim() === '') return [{ field: 'name', message: 'Give it a name.' }];
  const same = taken.some((other) => other.trim().toLowerCase() === name.trim().toLowerCase());
  return same ? [{ field: 'name', message: 'Another environment of this folder has this name.' }] : [];
}

function configProblems(config: EnvironmentConfig): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (config.type === 'image' && /\s/.test(config.image))
    problems.push({ field: 'config.image', message: 'An image’s name has no spaces.' });
  if (config.type === 'devcontainer' && config.path !== undefined && !insideFolder(config.path))
    problems.push({
      field: 'config.path',
      message: 'Name a .json file inside the folder, such as .devcontainer/devcontainer.json.',
    });
  if ('networking' in config) problems.push(...networkProblems(config.networking));
  if (config.type === 'image') problems.push(...packageProblems(config));
  return problems;
}

const insideFolder = (path: string): boolean =>
  /\.json$/.test(path) && !/^([/\\]|[A-Za-z]:)/.test(path) && !path.split(/[/\\]/).includes('..');

/** A bare name, or `*.` and a domain, with a port if it is not the usual one; four numbers are a name here, too. */
const HOST =
  /^(\*\.)?([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(:[1-9]\d{0,4})?$/;

function networkProblems(networking: Networking | undefined): FieldProblem[] {
  if (networking?.type !== 'limited') return [];
  return networking.allowed_hosts.flatMap((host, n) =>
    HOST.test(host) && host.length <= 253
      ? []
      : [
          {
            field: `config.networking.allowed_hosts.${n}`,
            message: `“${host}” is no host name: write it without scheme or path; *.example.com means all below it.`,
          },
        ],
  );
}

function packageProblems({ packages, networking }: Extract<EnvironmentConfig, { type: 'image' }>): FieldProblem[] {
  const entries = Object.entries(packages ?? {}).flatMap(([manager, all]) =>
    (all ?? []).map((entry, n) => ({ field: `config.packages.${manager}.${n}`, entry })),
  );
  const problems = entries
    .filter(({ entry }) => /^-|[\p{Cc}]/u.test(entry))
    .map(({ field, entry }) => ({ field, message: `“${entry}” would be an option of the manager, not a package.` }));
  if (entries.length === 0) return problems;
  if (networking?.type === 'none')
    problems.push({ field: 'config.networking', message: 'Without a network no package can be installed.' });
  if (networking?.type === 'limited' && !networking.allow_package_managers && networking.allowed_hosts.length === 0)
    problems.push({
      field: 'config.networking.allow_package_managers',
      message: 'Packages are installed from their registries: allow these, or name your own among the hosts.',
    });
  return problems;
}

function combinations({ config, lifetime, limits }: EnvironmentDefinition): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (config.type === 'host' && lifetime === 'call')
    problems.push({ field: 'lifetime', message: 'There is no sandbox that could be fresh for each call.' });
  if (config.type === 'os' || config.type === 'host') {
    for (const [name, value] of Object.entries(limits ?? {}))
      if (value !== undefined)
        problems.push({
          field: `limits.${name}`,
          message: 'Only a container can be limited; this would have no effect.',
        });
  }
  return problems;
}

const PACKAGES_OF_IMAGES =
  'Only an image gets packages; a devcontainer.json installs what it needs itself (features, Dockerfile, postCreateCommand).';

/** Fields that nobody would read: a typing error, or something that this kind of environment does not have. */
function unknownFields(value: unknown): FieldProblem[] {
  if (!isObject(value)) return [];
  const problems = strays(value, ['name', 'description', 'config', 'workspace', 'lifetime', 'limits'], '');
  const { config, limits } = value;
  if (isObject(limits)) problems.push(...strays(limits, ['memory_mib', 'cpus', 'pids'], 'limits.'));
  if (!isObject(config)) return problems;
  const known = CONFIG_FIELDS[String(config.type)];
  if (!known) return problems;
  problems.push(...strays(config, known, 'config.'));
  if (isObject(config.packages) && known.includes('packages'))
    problems.push(...strays(config.packages, ['apt', 'cargo', 'gem', 'go', 'npm', 'pip'], 'config.packages.'));
  if (isObject(config.networking) && known.includes('networking')) {
    const limited = config.networking.type === 'limited';
    const more = limited ? ['allowed_hosts', 'allow_package_managers', 'allow_mcp_servers'] : [];
    problems.push(...strays(config.networking, ['type', ...more], 'config.networking.'));
  }
  return problems;
}

const CONFIG_FIELDS: Readonly<Record<string, readonly string[]>> = {
  devcontainer: ['type', 'path', 'networking'],
  image: ['type', 'image', 'packages', 'networking'],
  os: ['type', 'networking'],
  host: ['type'],
};

function strays(value: Record<string, unknown>, known: readonly string[], at: string): FieldProblem[] {
  const fields = Object.keys(value).filter((key) => !known.includes(key) && value[key] !== undefined);
  return fields.map((key) => ({
    field: `${at}${key}`,
    message: key === 'packages' ? PACKAGES_OF_IMAGES : 'This field means nothing here; take it out.',
  }));
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
