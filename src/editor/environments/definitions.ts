import { EnvironmentInvalid } from '../../log/catalog.ts';
import type { Environment } from '../../protocol/environment.ts';
import { EnvironmentDefinition, environmentProblems, type FieldProblem } from '../../protocol/environment-rules.ts';
import type { Project } from '../project.ts';

/** What is wrong with a definition in this folder; `id`: of the environment it is to replace. */
export async function problemsIn(
  project: Project,
  definition: unknown,
  id: string | undefined,
): Promise<readonly FieldProblem[]> {
  const all = (await project.catalog()).environments();
  const before = all.find((one) => one.id === id);
  const taken = all.filter((one) => one.archived_at === null && one.id !== id).map(({ name }) => name);
  const problems = environmentProblems(definition, taken);
  const type = EnvironmentDefinition.safeParse(definition).data?.config.type;
  if (!before || type === undefined || type === before.config.type) return problems;
  const fixed = `It is ${before.config.type} and can't be changed; make another environment.`;
  return [...problems, { field: 'config.type', message: fixed }];
}

/** Saves it as a new environment, or in place of the one with this id. Throws `EnvironmentInvalid`, or `CatalogError`. */
export async function saveDefinition(
  project: Project,
  definition: unknown,
  id: string | undefined,
): Promise<Environment> {
  const problems = await problemsIn(project, definition, id);
  if (problems.length > 0) throw new EnvironmentInvalid(problems);
  const catalog = await project.catalog();
  const whole = EnvironmentDefinition.parse(definition);
  return id === undefined ? await catalog.createEnvironment(whole) : await catalog.redefineEnvironment(id, whole);
}
