import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import * as vscode from 'vscode';
import { openCatalog } from '../log/catalog.ts';
import { type Disposable, Emitter } from '../protocol/disposable.ts';
import type { Draft } from '../protocol/record.ts';
import { Door } from '../vault/door.ts';
import type { McpLogins } from '../vault/mcp-tokens.ts';
import { Redactor } from '../vault/redactor.ts';
import { type Accounts, type SecretStore, Vaults } from '../vault/vault.ts';
import type { SecretKey } from './secret-key.ts';

/** A shorter key is some local server's dummy; taking every “dummy” out of what is written would do only harm. */
const MIN_KEY = 16;
/** A keyring that waits for a person keeps no session waiting for longer, in ms: what it has not told, nobody can use. */
const PATIENCE_MS = 5000;
/** Named after its first use. */
const OWN_KEY = 'drover.maskKey';

export interface SecretsHost {
  storage: SecretStore;
  accounts: Accounts;
  key: Pick<SecretKey, 'get'>;
  /** Something secret was where nothing secret can be. */
  alarm(sentence: string): void;
}

/** The window's secrets: the vaults of each folder, and what is kept out of every log, panel and request. */
export class Secrets implements Disposable {
  readonly redactor = new Redactor();
  readonly #host: SecretsHost;
  readonly #vaults = new Map<string, Promise<Vaults>>();
  readonly #logins = new Map<string, Promise<McpLogins>>();
  readonly #ready = new Map<string, Promise<void>>();
  readonly #changed = new Emitter<void>();
  /** Some vault may have changed, in this window or another. */
  readonly onChange = this.#changed.on;
  readonly #listening: Disposable;

  constructor(host: SecretsHost) {
    this.#host = host;
    this.#listening = host.storage.onDidChange(() => this.#changed.fire());
  }

  /** The vaults of the folder whose `.drover` is `root`. Throws what opening its catalog throws. */
  vaults(root: string): Promise<Vaults> {
    const known = this.#vaults.get(root);
    if (known) return known;
    const opening = this.#open(root);
    this.#vaults.set(root, opening);
    opening.catch(() => this.#vaults.delete(root));
    return opening;
  }

  /** The logins for MCP servers in the vaults of a folder; loaded on need. */
  mcpLogins(root: string): Promise<McpLogins> {
    const known = this.#logins.get(root);
    if (known) return known;
    const opening = Promise.all([this.vaults(root), import('../vault/mcp-tokens.ts')]).then(
      ([vaults, { McpLogins: Loaded }]) => new Loaded(vaults),
    );
    this.#logins.set(root, opening);
    opening.catch(() => this.#logins.delete(root));
    return opening;
  }

  /** What everything passes that is written below `root`. */
  door(root: string): Door {
    return new Door(
      this.redactor,
      () => this.ready(root),
      (alarms) => this.#alarm(alarms),
    );
  }

  /** Resolves when the model's key and the values of the folder are known, or can't be had now. */
  ready(root: string): Promise<void> {
    const known = this.#ready.get(root);
    if (known) return known;
    const learning = Promise.race([this.#learn(root), sleep(PATIENCE_MS, undefined, { ref: false })]);
    this.#ready.set(root, learning);
    return learning;
  }

  /** The model's key; whoever gets it from here can't get it into a log. */
  async key(): Promise<string | undefined> {
    const key = await this.#host.key.get();
    if (key && key.length >= MIN_KEY) {
      this.redactor.know('drover.apiKey', { credential_id: null, vault_id: null, name: 'the API key' }, [key]);
    }
    return key;
  }

  /**
   * Drover's own key, made at its first use: what is masked is told apart by it, and sessions' authorities are derived
   * from it. It is nobody's to see, as a value of a vault is.
   */
  async ownKey(): Promise<Uint8Array> {
    const { storage } = this.#host;
    const kept = await Promise.resolve(storage.get(OWN_KEY)).catch(() => undefined);
    if (kept) return Buffer.from(kept, 'base64');
    const fresh = randomBytes(32);
    // Without it, what was revealed is masked again in the next window, and programs that run must be started again.
    await Promise.resolve(storage.store(OWN_KEY, fresh.toString('base64'))).catch(() => undefined);
    return fresh;
  }

  changed(): void {
    this.#changed.fire();
  }

  dispose(): void {
    this.#listening.dispose();
    for (const opening of this.#vaults.values()) {
      void opening.then(
        (vaults) => vaults.dispose(),
        () => undefined,
      );
    }
  }

  async #open(root: string): Promise<Vaults> {
    const { vaults: records } = await openCatalog(root);
    const { storage: secrets, accounts } = this.#host;
    return new Vaults({ records, secrets, accounts, redactor: this.redactor, onRefreshFailed: () => this.changed() });
  }

  /** A catalog or a keyring that can't be read has nothing that could be used either, so it keeps nobody from working. */
  async #learn(root: string): Promise<void> {
    const vaults = this.vaults(root).then((open) => open.ready());
    await Promise.allSettled([this.key(), vaults]);
  }

  #alarm(alarms: readonly Draft[]): void {
    for (const { event } of alarms) {
      if (!('name' in event) || typeof event.name !== 'string') continue;
      this.#host.alarm(
        `Drover took ${event.name} out of what was about to be written into a session. Unless somebody typed it, it should have no way there: look at what the session did just before. The value itself is not in the log.`,
      );
    }
  }
}

/** VS Code's secret storage as the vaults want it. */
export const secretStore = (storage: vscode.SecretStorage): SecretStore => ({
  get: (key) => storage.get(key),
  store: (key, value) => storage.store(key, value),
  delete: (key) => storage.delete(key),
  onDidChange: (listener) => storage.onDidChange(({ key }) => listener(key)),
});

/** The editor's sign-ins. Nobody is asked to sign in: that is done where the credential is made. */
export const accounts: Accounts = {
  async token(providerId, scopes) {
    const session = await vscode.authentication.getSession(providerId, [...scopes], { silent: true });
    return session?.accessToken;
  },
};
