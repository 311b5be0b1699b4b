import type { ModelClient, ModelLimits } from './model.ts';

/** What every current model can do, in tokens; used until its source has said better. */
const SAFE: ModelLimits = { context: 200_000, output: 64_000 };

const known = new WeakMap<ModelClient, Map<string, ModelLimits>>();

/** A model's limits as far as known by now. Asks its source at most once and never waits: the first token matters more. */
export function limitsOf(client: ModelClient, model: string): ModelLimits {
  const models = known.get(client) ?? new Map<string, ModelLimits>();
  known.set(client, models);
  const limits = models.get(model);
  if (limits) return limits;
  models.set(model, SAFE);
  client.limits(model).then(
    (said) => models.set(model, said),
    () => models.delete(model),
  );
  return SAFE;
}
