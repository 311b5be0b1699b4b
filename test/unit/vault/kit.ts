import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openCatalog } from '../../../src/log/catalog.ts';
import { Emitter } from '../../../src/protocol/disposable.ts';
import type { CredentialAuth, CredentialDefinition } from '../../../src/protocol/vault.ts';
import { Redactor } from '../../../src/vault/redactor.ts';
import { type SecretStore, Vaults } from '../../../src/vault/vault.ts';

/** A secret storage as VS Code's: shared by all windows, asynchronous, and told of each change. */
export class MemorySecrets implements SecretStore {
  readonly kept = new Map<string, string>();
  readonly #changed = new Emitter<string>();
  readonly onDidChange = this.#changed.on;
  /** Set to make the next `store` fail, as a locked keyring does. */
  locked = false;
  /** Called in the middle of a `store`, where another window may act. */
  between: (() => Promise<void>) | undefined;

  async get(key: string): Promise<string | undefined> {
    return this.kept.get(key);
  }

  async store(key: string, value: string): Promise<void> {
    const { between } = this;
    this.between = undefined;
    await between?.();
    if (this.locked) throw new Error('the keyring is locked');
    this.kept.set(key, value);
    this.#changed.fire(key);
  }

  async delete(key: string): Promise<void> {
    this.kept.delete(key);
    this.#changed.fire(key);
  }
}

export async function temporaryFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'drover-vault-')));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  return folder;
}

/** One window's vaults of a folder; the catalog is the real one on the disk. */
export async function openWindow(folder: string, secrets = new MemorySecrets(), tokens: Record<string, string> = {}) {
  const redactor = new Redactor();
  const records = (await openCatalog(join(folder, '.drover'))).vaults;
  const accounts = { token: async (provider: string) => tokens[provider] };
  const vaults = new Vaults({ records, secrets, accounts, redactor });
  onTestFinished(() => vaults.dispose());
  return { vaults, secrets, redactor, records };
}

export const variable = (secret_name: string, hosts?: string[], more: Partial<CredentialAuth> = {}) =>
  ({
    auth: {
      type: 'environment_variable',
      secret_name,
      networking: hosts ? { type: 'limited', allowed_hosts: hosts } : { type: 'unrestricted' },
      ...more,
    },
  }) as CredentialDefinition;
