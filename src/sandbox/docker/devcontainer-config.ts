import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import {
  findNodeAtLocation,
  type JSONPath,
  type ParseError,
  type ParseErrorCode,
  parse,
  parseTree,
  printParseErrorCode,
} from 'jsonc-parser';
import { z } from 'zod';
import { messageOf } from '../../protocol/errors.ts';
import { SandboxUnavailable } from '../sandbox.ts';

const Mount = z.union([z.string(), z.looseObject({ type: z.string().optional(), source: z.string().optional() })]);
const Command = z.union([z.string(), z.array(z.string()), z.record(z.string(), z.unknown())]);

/** The part of a devcontainer.json that Drover reads or changes; everything else passes through. */
export const DevcontainerConfig = z.looseObject({
  image: z.string().optional(),
  dockerFile: z.string().optional(),
  context: z.string().optional(),
  build: z.looseObject({ dockerfile: z.string().optional(), context: z.string().optional() }).optional(),
  dockerComposeFile: z.union([z.string(), z.array(z.string())]).optional(),
  runArgs: z.array(z.string()).optional(),
  mounts: z.array(Mount).optional(),
  workspaceMount: z.string().optional(),
  workspaceFolder: z.string().optional(),
  remoteUser: z.string().optional(),
  initializeCommand: Command.optional(),
  onCreateCommand: Command.optional(),
  postCreateCommand: Command.optional(),
  postStartCommand: Command.optional(),
  remoteEnv: z.record(z.string(), z.string().nullable()).optional(),
  containerEnv: z.record(z.string(), z.string()).optional(),
});
export type DevcontainerConfig = z.infer<typeof DevcontainerConfig>;

/** Where the specification looks first. */
const USUAL = ['.devcontainer/devcontainer.json', '.devcontainer.json'];

/** The folder has no devcontainer.json where one is looked for. */
export class NoConfig extends SandboxUnavailable {
  constructor(message: string) {
    super('container', message);
  }
}

/**
 * The folder's devcontainer.json: `path` if given, else the places the specification names.
 * Throws `SandboxUnavailable` if there is none or more than one to choose from.
 */
export function findConfig(workspaceFolder: string, path: string | undefined): string {
  const usual = [...USUAL, ...nested(workspaceFolder)];
  const candidates = path === undefined ? usual : [path];
  const found = candidates.map((candidate) => join(workspaceFolder, candidate)).filter(isFile);
  const [first, second] = found;
  if (!first)
    throw new NoConfig(
      path === undefined
        ? 'This folder has no devcontainer.json, so there is nothing to make a sandbox from; add .devcontainer/devcontainer.json, or use an environment of type "image" or "os".'
        : `The environment names ${path}, which is not in this folder; correct the path in the environment or add the file.`,
    );
  // With both default places taken the first wins, as the specification says; nested ones have no order.
  if (second && path === undefined && !USUAL.includes(relative(workspaceFolder, first)))
    throw new SandboxUnavailable(
      'container',
      `This folder has ${found.length} devcontainer.json files; name one of them in the environment's "path", such as ${relative(workspaceFolder, first)}.`,
    );
  return first;
}

/**
 * The configurations a person has to choose among, relative to the folder; none where the specification says which one
 * counts, or there is only one.
 */
export function configurations(workspaceFolder: string): string[] {
  if (USUAL.some((path) => isFile(join(workspaceFolder, path)))) return [];
  const found = nested(workspaceFolder).filter((path) => isFile(join(workspaceFolder, path)));
  return found.length > 1 ? found : [];
}

/** Not a folder: one stands in for a `.devcontainer.json` that must not be made from inside a sandbox. */
const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;

function nested(workspaceFolder: string): string[] {
  try {
    return readdirSync(join(workspaceFolder, '.devcontainer'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => `.devcontainer/${entry.name}/devcontainer.json`)
      .sort();
  } catch {
    return [];
  }
}

/** Reads a devcontainer.json. Throws `SandboxUnavailable` that names the file and the line of what is wrong. */
export function readConfig(file: string, shown: string): DevcontainerConfig {
  let source: string;
  try {
    source = readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    throw new SandboxUnavailable('container', `${shown} can't be read: ${messageOf(error)}.`, { cause: error });
  }
  const errors: ParseError[] = [];
  const value: unknown = parse(source, errors, { allowTrailingComma: true });
  const [syntax] = errors;
  if (syntax) throw broken(shown, lineAt(source, syntax.offset), SYNTAX[syntax.error] ?? words(syntax.error));

  const checked = DevcontainerConfig.safeParse(value);
  if (!checked.success) {
    const issue = checked.error.issues[0];
    const path = (issue?.path ?? []).filter((part) => typeof part !== 'symbol');
    const name = path.length > 0 ? `"${path.join('.')}" is not as expected: ` : '';
    throw broken(shown, lineOf(source, path), `${name}${issue?.message ?? 'it has the wrong shape'}`);
  }
  const config = checked.data;
  if (!config.image && !config.dockerFile && !config.build?.dockerfile && !config.dockerComposeFile)
    throw broken(
      shown,
      1,
      'it names no "image" and no "build.dockerfile", so there is nothing to make a container from',
    );
  return config;
}

const broken = (shown: string, line: number, what: string): SandboxUnavailable =>
  new SandboxUnavailable('container', `${shown}, line ${line}: ${what}. Correct the file and try again.`);

const lineAt = (source: string, offset: number): number => source.slice(0, offset).split('\n').length;

function lineOf(source: string, path: JSONPath): number {
  const tree = parseTree(source, [], { allowTrailingComma: true });
  if (!tree) return 1;
  for (let depth = path.length; depth > 0; depth--) {
    const node = findNodeAtLocation(tree, path.slice(0, depth));
    if (node) return lineAt(source, node.offset);
  }
  return lineAt(source, tree.offset);
}

/** By jsonc-parser's error numbers. */
const SYNTAX: Readonly<Record<number, string>> = {
  1: 'something stands here that is no JSON value',
  2: 'a number is malformed',
  3: 'a property name in double quotes is expected',
  4: 'a value is expected',
  5: 'a colon is missing',
  6: 'a comma is missing',
  7: 'a closing brace is missing',
  8: 'a closing bracket is missing',
  9: 'something follows after the end',
  11: 'a comment is not closed',
  12: 'a string is not closed',
};

const words = (code: ParseErrorCode): string =>
  printParseErrorCode(code)
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase();
