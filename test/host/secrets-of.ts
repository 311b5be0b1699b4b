import { accounts, Secrets } from '../../src/editor/secrets.ts';
import { Emitter } from '../../src/protocol/disposable.ts';

/** The window's secrets over the stage's folder. VS Code's own storage is an extension's alone; its e2e test uses it. */
export function secretsOf(): Secrets {
  const kept = new Map<string, string>();
  const changed = new Emitter<string>();
  return new Secrets({
    storage: {
      get: async (key) => kept.get(key),
      store: async (key, value) => void kept.set(key, value),
      delete: async (key) => void kept.delete(key),
      onDidChange: changed.on,
    },
    accounts,
    key: { get: async () => undefined },
    alarm: () => undefined,
  });
}
