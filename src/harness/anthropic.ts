import { ModelCatalog } from './anthropic/catalog.ts';
import { baseUrlOf, type ConnectionOptions, clientOf, connect, loadSdk } from './anthropic/connection.ts';
import { Exchange } from './anthropic/exchange.ts';
import { diagnose } from './anthropic/failure.ts';
import { failureOf } from './anthropic/model-failure.ts';
import { ReplyBuilder } from './anthropic/reply.ts';
import type { ModelClient } from './model.ts';

export interface AnthropicOptions extends ConnectionOptions {
  /** Attempts after the first one, made by the SDK. Default 2. */
  maxRetries?: number;
  /** ms of silence in the middle of a reply after which it is given up; a live service pings. Default 3 minutes. */
  stallMs?: number;
}

/** ms to wait for a model's description before its limits are guessed. */
const DESCRIBE_MS = 5000;

/** Loads the SDK ahead of the first request. Opens no connection. */
export async function warm(): Promise<void> {
  await loadSdk();
}

/** A model client over the Messages API, through the official SDK and with its retries. Keeps no key and no session. */
export function createAnthropicClient(options: AnthropicOptions): ModelClient {
  const catalog = new ModelCatalog();
  const plainFetch: typeof fetch = (input, init) => (options.fetch ?? fetch)(input, init);
  return {
    async request(call, on, signal) {
      const builder = new ReplyBuilder(on);
      const connection = await connect(options, call.model, signal);
      return new Exchange(connection, call, builder, on, signal, {
        fetch: plainFetch,
        maxRetries: options.maxRetries ?? 2,
        stallMs: options.stallMs ?? 180_000,
        thinks: catalog.thinks(connection.baseUrl, call.model),
      }).run();
    },

    async list() {
      const connection = await connect(options, '');
      const { sdk, target, key, baseUrl } = connection;
      try {
        return await catalog.list(clientOf(connection, plainFetch, options.maxRetries ?? 2), baseUrl);
      } catch (error) {
        throw failureOf(diagnose(sdk, error, target, false), { error, key });
      }
    },

    async limits(model) {
      return await catalog.limits(baseUrlOf(options), model, async () => {
        const client = clientOf(await connect(options, model), plainFetch, 0);
        return await client.models.retrieve(model, null, { timeout: DESCRIBE_MS });
      });
    },
  };
}
