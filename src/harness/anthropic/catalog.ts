import type * as Sdk from '@anthropic-ai/sdk';
import type { ModelInfo, ModelLimits } from '../model.ts';

/** What is assumed of a model nobody describes: small enough for every model on the price list. */
const SAFE_LIMITS: ModelLimits = { context: 200_000, output: 32_000 };
/** Pages of models are read up to so many models. */
const MOST_MODELS = 1000;
/** ms after which a model that could not be described is asked for again. */
const ASK_AGAIN_MS = 60_000;

interface Known {
  limits: ModelLimits;
  thinks: boolean;
}

const toInfo = (model: Sdk.Anthropic.ModelInfo): ModelInfo => ({
  id: model.id,
  name: model.display_name,
  maxInput: model.max_input_tokens,
  maxOutput: model.max_tokens,
});

const toKnown = (model: Sdk.Anthropic.ModelInfo): Known => ({
  limits: {
    context: model.max_input_tokens ?? SAFE_LIMITS.context,
    output: model.max_tokens ?? SAFE_LIMITS.output,
  },
  thinks: model.capabilities?.thinking?.types?.adaptive?.supported ?? false,
});

/** What the service says of its models, asked once for each. */
export class ModelCatalog {
  readonly #known = new Map<string, Known>();
  readonly #asking = new Map<string, Promise<ModelLimits>>();
  readonly #failedAt = new Map<string, number>();

  async list(client: Sdk.Anthropic, baseUrl: string): Promise<ModelInfo[]> {
    const models: ModelInfo[] = [];
    for await (const model of client.models.list({ limit: 100 })) {
      this.#known.set(keyOf(baseUrl, model.id), toKnown(model));
      models.push(toInfo(model));
      if (models.length >= MOST_MODELS) break;
    }
    return models;
  }

  /** Never throws. Concurrent callers share one request. */
  limits(baseUrl: string, model: string, ask: () => Promise<Sdk.Anthropic.ModelInfo>): Promise<ModelLimits> {
    const key = keyOf(baseUrl, model);
    const known = this.#known.get(key);
    if (known) return Promise.resolve(known.limits);
    if (Date.now() - (this.#failedAt.get(key) ?? 0) < ASK_AGAIN_MS) return Promise.resolve(SAFE_LIMITS);
    const asking =
      this.#asking.get(key) ??
      ask()
        .then((answer) => {
          const found = toKnown(answer);
          this.#known.set(key, found);
          return found.limits;
        })
        .catch(() => {
          this.#failedAt.set(key, Date.now());
          return SAFE_LIMITS;
        })
        .finally(() => this.#asking.delete(key));
    this.#asking.set(key, asking);
    return asking;
  }

  /** The model is known to take adaptive thinking. False as long as nobody asked for its limits. */
  thinks(baseUrl: string, model: string): boolean {
    return this.#known.get(keyOf(baseUrl, model))?.thinks ?? false;
  }
}

const keyOf = (baseUrl: string, model: string): string => `${baseUrl} ${model}`;
