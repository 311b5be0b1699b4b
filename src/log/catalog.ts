import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import { Agent, AgentDefinition, agentProblem } from '../protocol/agent.ts';
import { Environment } from '../protocol/environment.ts';
import { type EnvironmentDefinition, environmentProblems, type FieldProblem } from '../protocol/environment-rules.ts';
import { mint } from '../protocol/ids.ts';
import { Rule } from '../protocol/rule.ts';
import { add, check, Entries, patched, replace } from './catalog-entries.ts';
import { CatalogError, CatalogFile, stored } from './catalog-file.ts';
import { VaultRecords } from './catalog-vaults.ts';
import type { LeaseOptions } from './lease.ts';
import { DEFAULT_MODEL, seeds } from './seeds.ts';

export { CatalogError, DEFAULT_MODEL };

/** An environment that can't be saved as it is, with what is wrong by field. */
export class EnvironmentInvalid extends CatalogError {
  readonly problems: readonly FieldProblem[];

  constructor(problems: readonly FieldProblem[]) {
    const words = problems.map(({ field, message }) => `${field || 'the whole'}: ${message}`);
    super(`The environment was not saved. ${words.join(' ')}`);
    this.problems = problems;
  }
}

const RuleDefinition = Rule.omit({ id: true, type: true, created_at: true, archived_at: true });
export type RuleDefinition = z.infer<typeof RuleDefinition>;

/** What is left out stays; lists are replaced whole; in `metadata` a null takes a key away. */
export type AgentChange = Partial<Omit<AgentDefinition, 'metadata'>> & {
  metadata?: Record<string, string | null>;
  /** Only if this is still the newest version. */
  version?: number;
};

/** The agents, environments and rules of one workspace folder, the same in all its windows. Each call sees what the disk has. */
export interface Catalog {
  /** All agents, each in its newest version, in the order they were made; archived ones too. */
  agents(): Agent[];
  /** One agent, in a former version if asked. */
  agent(id: string, version?: number): Agent | undefined;
  /** All versions of an agent, oldest first. */
  agentVersions(id: string): Agent[];
  /** Throws `CatalogError` naming the field that is not valid. So do the calls below. */
  createAgent(definition: AgentDefinition): Promise<Agent>;
  /** Makes a new version if anything is different. Sessions that run keep the one they started with. */
  updateAgent(id: string, change: AgentChange): Promise<Agent>;
  /** For good: new sessions can't use it. */
  archiveAgent(id: string): Promise<Agent>;
  /** All environments, in the order they were made; archived ones too. */
  environments(): Environment[];
  environment(id: string): Environment | undefined;
  /** Throws `EnvironmentInvalid`; so do the two below. */
  createEnvironment(definition: EnvironmentDefinition): Promise<Environment>;
  /** The type of its config can't be changed. */
  updateEnvironment(id: string, change: Partial<EnvironmentDefinition>): Promise<Environment>;
  /** The same with all of it: what the definition leaves out is gone. */
  redefineEnvironment(id: string, definition: EnvironmentDefinition): Promise<Environment>;
  archiveEnvironment(id: string): Promise<Environment>;
  /** What a person always allows in this folder, oldest first; without those taken back. */
  rules(): Rule[];
  /** Refuses a rule for the whole of a shell: any command would pass. */
  createRule(definition: RuleDefinition): Promise<Rule>;
  /** Takes a rule back. Sessions that took it in when they were made keep it. */
  archiveRule(id: string): Promise<Rule>;
  /** What is known of the folder's vaults; their values are elsewhere. */
  readonly vaults: VaultRecords;
}

export interface CatalogOptions extends LeaseOptions {
  /** Model of the built-in agents. */
  model?: string;
  /** Told in a sentence what is broken in the file. What can be used is used all the same. */
  onProblem?: (message: string) => void;
}

/**
 * Opens the catalog of a `.drover` folder. A folder that has none gets the built-in agents and environments;
 * they are written with the first change.
 * @throws CatalogError if there is a catalog that can't be read
 */
export async function openCatalog(root: string, options: CatalogOptions = {}): Promise<Catalog> {
  const now = options.now ?? (() => new Date());
  const opened = now().toISOString();
  const file = new CatalogFile({
    ...options,
    root,
    initial: () => stored(seeds(options.model ?? DEFAULT_MODEL, opened)),
    onProblem: options.onProblem ?? (() => undefined),
  });
  file.read();
  return new FolderCatalog(file, () => now().toISOString());
}

function checkAgent(definition: AgentDefinition): void {
  check(AgentDefinition, definition, 'agent');
  const problem = agentProblem(definition);
  if (problem) throw new CatalogError(`The agent was not saved. ${problem}`);
}

class FolderCatalog implements Catalog {
  readonly vaults: VaultRecords;
  readonly #file: CatalogFile;
  readonly #now: () => string;
  readonly #entries: Entries;

  constructor(file: CatalogFile, now: () => string) {
    this.#file = file;
    this.#now = now;
    this.#entries = new Entries(file, now);
    this.vaults = new VaultRecords(file, now);
  }

  agents(): Agent[] {
    return this.#entries.valid(Agent, this.#file.read().agents);
  }

  agent(id: string, version?: number): Agent | undefined {
    return this.agentVersions(id).findLast((agent) => version === undefined || agent.version === version);
  }

  agentVersions(id: string): Agent[] {
    const { agents, past_agents } = this.#file.read();
    return this.#entries.valid(Agent, [...past_agents, ...agents]).filter((agent) => agent.id === id);
  }

  async createAgent(definition: AgentDefinition): Promise<Agent> {
    checkAgent(definition);
    const at = this.#now();
    const dates = { created_at: at, updated_at: at, archived_at: null };
    const agent: Agent = { ...definition, id: mint.agent(), type: 'agent', version: 1, ...dates };
    return this.#file.update(({ agents }) => add(agents, agent));
  }

  async updateAgent(id: string, { version, metadata, ...change }: AgentChange): Promise<Agent> {
    return this.#file.update((data) => {
      const before = this.#entries.living(Agent, data.agents, id);
      if (version !== undefined && version !== before.version) {
        throw new CatalogError(
          `Agent "${before.name}" is at version ${before.version} by now, not ${version}, so nothing was changed; look at it again first.`,
        );
      }
      const kept = patched(before.metadata, metadata);
      const wanted = { ...before, ...plain(change), ...(kept ? { metadata: kept } : {}) };
      if (isDeepStrictEqual(wanted, before)) return before;
      const after: Agent = { ...wanted, version: before.version + 1, updated_at: this.#now() };
      checkAgent(after);
      data.past_agents.push(before);
      return replace(data.agents, after);
    });
  }

  async archiveAgent(id: string): Promise<Agent> {
    return this.#file.update(({ agents }) => this.#entries.archive(Agent, agents, id));
  }

  environments(): Environment[] {
    return this.#entries.valid(Environment, this.#file.read().environments);
  }

  environment(id: string): Environment | undefined {
    return this.environments().find((environment) => environment.id === id);
  }

  async createEnvironment(definition: EnvironmentDefinition): Promise<Environment> {
    const at = this.#now();
    const dates = { created_at: at, updated_at: at, archived_at: null };
    const environment: Environment = { ...definition, id: mint.environment(), type: 'environment', ...dates };
    return this.#file.update(({ environments }) => {
      this.#checkEnvironment(definition, environments);
      return add(environments, environment);
    });
  }

  async updateEnvironment(id: string, change: Partial<EnvironmentDefinition>): Promise<Environment> {
    return this.#file.update(({ environments }) => {
      const before = this.#entries.living(Environment, environments, id);
      if (change.config && change.config.type !== before.config.type) {
        throw new CatalogError(
          `Environment "${before.name}": config.type is ${before.config.type} and can't be changed; make another environment.`,
        );
      }
      const wanted = { ...before, ...plain(change) };
      if (isDeepStrictEqual(wanted, before)) return before;
      this.#checkEnvironment(asDefinition(wanted), environments, id);
      const after: Environment = { ...wanted, updated_at: this.#now() };
      return replace(environments, after);
    });
  }

  async redefineEnvironment(id: string, definition: EnvironmentDefinition): Promise<Environment> {
    return this.#file.update(({ environments }) => {
      const before = this.#entries.living(Environment, environments, id);
      if (definition.config?.type !== before.config.type)
        throw new EnvironmentInvalid([
          {
            field: 'config.type',
            message: `It is ${before.config.type} and can't be changed; make another environment.`,
          },
        ]);
      this.#checkEnvironment(definition, environments, id);
      const { type, created_at, archived_at } = before;
      const wanted = { ...definition, id: before.id, type, created_at, archived_at };
      return replace(environments, { ...wanted, updated_at: this.#now() });
    });
  }

  /** Throws `EnvironmentInvalid`. `id`: of the one that is changed, whose name is its own. */
  #checkEnvironment(definition: unknown, entries: readonly unknown[], id?: string): void {
    const living = this.#entries.valid(Environment, entries).filter((one) => one.archived_at === null && one.id !== id);
    const problems = environmentProblems(
      definition,
      living.map(({ name }) => name),
    );
    if (problems.length > 0) throw new EnvironmentInvalid(problems);
  }

  async archiveEnvironment(id: string): Promise<Environment> {
    return this.#file.update(({ environments }) => this.#entries.archive(Environment, environments, id));
  }

  rules(): Rule[] {
    return this.#entries.valid(Rule, this.#file.read().rules).filter((rule) => rule.archived_at === null);
  }

  async createRule(definition: RuleDefinition): Promise<Rule> {
    check(RuleDefinition, definition, 'rule');
    if (definition.tool === 'bash' && definition.input_sha256 === undefined) {
      throw new CatalogError(
        'A rule for every shell command would allow anything, so it was not saved; allow single commands.',
      );
    }
    const rule: Rule = { ...definition, id: mint.rule(), type: 'rule', created_at: this.#now(), archived_at: null };
    return this.#file.update(({ rules }) => {
      const same = this.#entries
        .valid(Rule, rules)
        .find((one) => one.archived_at === null && one.tool === rule.tool && one.input_sha256 === rule.input_sha256);
      return same ?? add(rules, rule);
    });
  }

  async archiveRule(id: string): Promise<Rule> {
    return this.#file.update(({ rules }) => this.#entries.archive(Rule, rules, id));
  }
}

/** Without what only the catalog sets. */
function asDefinition({
  id: _id,
  type: _type,
  created_at: _c,
  updated_at: _u,
  archived_at: _a,
  ...definition
}: Environment) {
  return definition;
}

/** As it will be read back: what is undefined was not said. */
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value));
