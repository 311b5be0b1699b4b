import type { Disposable } from '../protocol/disposable.ts';
import { messageOf } from '../protocol/errors.ts';
import type { CredentialId, VaultId } from '../protocol/ids.ts';
import {
  type Credential,
  CredentialAuth,
  type CredentialDefinition,
  credentialKey,
  credentialName,
  type Vault,
  type VaultDefinition,
} from '../protocol/vault.ts';
import type { Redactor } from './redactor.ts';
import { checkValues, type SecretValues, VaultError, valueFields } from './values.ts';

/** Where values are kept: the editor's secret storage. The same in all windows of a person. */
export interface SecretStore {
  get(key: string): PromiseLike<string | undefined>;
  store(key: string, value: string): PromiseLike<void>;
  delete(key: string): PromiseLike<void>;
  /** Told the key of what another window or this one changed. */
  onDidChange(listener: (key: string) => void): Disposable;
}

/** The editor's own sign-ins, such as GitHub's. */
export interface Accounts {
  /** A token with at least these scopes, without asking the person; undefined if nobody is signed in. */
  token(providerId: string, scopes: readonly string[]): PromiseLike<string | undefined>;
}

/** Where the descriptions are kept: the catalog of a folder. Each call sees what the disk has. */
export interface VaultRecords {
  vaults(): Vault[];
  credentials(vault?: string): Credential[];
  createVault(definition: VaultDefinition): Promise<Vault>;
  updateVault(id: string, change: { display_name?: string }): Promise<Vault>;
  archiveVault(id: string): Promise<Vault>;
  deleteVault(id: string): Promise<void>;
  createCredential(vault: string, definition: CredentialDefinition): Promise<Credential>;
  touchCredential(id: string, auth?: CredentialAuth): Promise<Credential>;
  refreshFailed(id: string): Promise<Credential>;
  archiveCredential(id: string): Promise<Credential>;
  deleteCredential(id: string): Promise<void>;
}

export interface VaultParts {
  records: VaultRecords;
  secrets: SecretStore;
  accounts: Accounts;
  /** Knows each value before anybody else gets it. */
  redactor: Redactor;
  /** Told when a login has turned out to be over, which nobody did by hand. */
  onRefreshFailed?: () => void;
}

const PREFIX = 'drover.credential.';
const keyOf = (id: string): string => PREFIX + id;

/**
 * The vaults of one folder. Descriptions are in the catalog, values in the secret storage under the credential's id, and
 * nothing shows a value again. A value is never stored for a credential that has no living record, and a record never
 * says archived while its value is there: whatever order two windows or a crash bring about.
 */
export class Vaults implements Disposable {
  readonly #records: VaultRecords;
  readonly #secrets: SecretStore;
  readonly #accounts: Accounts;
  readonly #redactor: Redactor;
  readonly #listening: Disposable;
  readonly #onRefreshFailed: () => void;
  #loaded: Promise<void> | undefined;

  constructor({ records, secrets, accounts, redactor, onRefreshFailed }: VaultParts) {
    this.#onRefreshFailed = onRefreshFailed ?? (() => undefined);
    this.#records = records;
    this.#secrets = secrets;
    this.#accounts = accounts;
    this.#redactor = redactor;
    this.#listening = secrets.onDidChange((key) => {
      if (key.startsWith(PREFIX)) void this.#changed(key.slice(PREFIX.length));
    });
  }

  /** Resolves when every value of the folder is known to the redactor. A value that can't be read keeps nobody waiting. */
  ready(): Promise<void> {
    this.#loaded ??= Promise.all(this.#living().map((one) => this.#learn(one))).then(() => undefined);
    return this.#loaded;
  }

  /** Without archived ones, in the order they were made. */
  vaults(): Vault[] {
    return this.#records.vaults().filter((vault) => vault.archived_at === null);
  }

  /** In the order they were made; archived ones too. */
  credentials(vault: VaultId): Credential[] {
    return this.#records.credentials(vault);
  }

  async createVault(definition: VaultDefinition): Promise<Vault> {
    return this.#records.createVault(definition);
  }

  async renameVault(id: VaultId, display_name: string): Promise<Vault> {
    return this.#records.updateVault(id, { display_name });
  }

  /** @param values of a stored credential; one of the editor's own sign-ins has none */
  async addCredential(vault: VaultId, definition: CredentialDefinition, values: SecretValues): Promise<Credential> {
    const stored = isStored(definition);
    if (stored) checkValues(definition.auth, values);
    else if (Object.keys(values).length > 0)
      throw new VaultError('The value comes from the sign-in, so none was saved.');
    const credential = await this.#records.createCredential(vault, definition);
    if (!stored) {
      await this.#learn(credential);
      return credential;
    }
    try {
      await this.#put(credential, values);
    } catch (error) {
      await this.#records.deleteCredential(credential.id);
      throw error;
    }
    return credential;
  }

  /**
   * Puts a new value in. What was there before is gone; it stays known to the redactor while this window lives.
   * @param auth how it is renewed from now on; absent: as before, and nobody knows when an OAuth token expires
   */
  async rotate(id: CredentialId, values: SecretValues, auth?: CredentialAuth): Promise<Credential> {
    const credential = this.#need(id);
    if (!isStored(credential)) throw new VaultError('Its value comes from the sign-in; sign in anew to change it.');
    const renewed = auth ?? withoutExpiry(credential.auth);
    // Before the old value is gone: the record would refuse it only afterwards.
    if (!CredentialAuth.safeParse(renewed).success || credentialKey({ auth: renewed }) !== credentialKey(credential)) {
      throw new VaultError(
        `“${credentialName(credential)}” was left as it is: the new login is not one for the same thing.`,
      );
    }
    checkValues(renewed, values);
    await this.#put(credential, values);
    return this.#records.touchCredential(id, renewed);
  }

  /** The token can be renewed no more: until a value is put in anew, the person is asked to. */
  async refreshFailed(id: CredentialId): Promise<void> {
    await this.#records.refreshFailed(id);
    this.#onRefreshFailed();
  }

  /** For good: the value is gone, the record stays. */
  async archiveCredential(id: CredentialId): Promise<Credential> {
    await this.#secrets.delete(keyOf(id));
    const archived = await this.#records.archiveCredential(id);
    // Another window may have put a new value in, between the two.
    await this.#secrets.delete(keyOf(id));
    return archived;
  }

  async deleteCredential(id: CredentialId): Promise<void> {
    await this.#secrets.delete(keyOf(id));
    await this.#records.deleteCredential(id);
    await this.#secrets.delete(keyOf(id));
  }

  async archiveVault(id: VaultId): Promise<void> {
    for (const one of this.#living(id)) await this.archiveCredential(one.id);
    await this.#records.archiveVault(id);
  }

  async deleteVault(id: VaultId): Promise<void> {
    for (const one of this.#records.credentials(id)) await this.deleteCredential(one.id);
    await this.#records.deleteVault(id);
  }

  /** True if there is a value to be had now. */
  async hasValue(credential: Credential): Promise<boolean> {
    return (await this.#values(credential)) !== undefined;
  }

  /**
   * The value that goes out in place of a placeholder. Only for what runs outside of every sandbox, at the moment of use.
   * Throws `VaultError` if there is none.
   */
  async value(id: CredentialId): Promise<string> {
    const { credential, values } = await this.open(id);
    return values[valueFields(credential.auth)[0].name] ?? '';
  }

  /** As `value`, with all that is kept for a credential: for what renews it. */
  async open(id: CredentialId): Promise<{ credential: Credential; values: SecretValues }> {
    const credential = this.#need(id);
    const values = await this.#values(credential);
    if (values?.[valueFields(credential.auth)[0].name] === undefined) {
      const how = isStored(credential) ? 'put its value in anew' : 'sign in again';
      throw new VaultError(`“${credentialName(credential)}” has no value here, so nothing was sent with it; ${how}.`);
    }
    return { credential, values };
  }

  /** Living credentials of these vaults, those of the first vault first. */
  living(vaults: readonly VaultId[]): Credential[] {
    const there = new Set(this.vaults().map((vault) => vault.id));
    return vaults.filter((id) => there.has(id)).flatMap((id) => this.#living(id));
  }

  dispose(): void {
    this.#listening.dispose();
  }

  #living(vault?: VaultId): Credential[] {
    return this.#records.credentials(vault).filter((one) => one.archived_at === null);
  }

  #need(id: CredentialId): Credential {
    const credential = this.#living().find((one) => one.id === id);
    if (!credential) throw new VaultError('This credential is archived or deleted, so it can’t be used any more.');
    return credential;
  }

  /** The redactor first: from then on the value can't get into a log. */
  async #put(credential: Credential, values: SecretValues): Promise<void> {
    this.#tell(credential, values);
    try {
      await this.#secrets.store(keyOf(credential.id), JSON.stringify(values));
    } catch (error) {
      throw new VaultError(
        `The editor’s secret storage refused the value (${messageOf(error)}), so it was not saved; see whether the system’s keyring is unlocked.`,
        { cause: error },
      );
    }
    // Archived meanwhile in another window: then nothing may be left of it.
    if (this.#living().some((one) => one.id === credential.id)) return;
    await this.#secrets.delete(keyOf(credential.id));
    throw new VaultError(
      'The credential was archived or deleted in another window meanwhile, so its value was not kept.',
    );
  }

  /** What is there now, told to the redactor before it is given on. */
  async #values(credential: Credential): Promise<SecretValues | undefined> {
    const values = await this.#read(credential);
    if (values) this.#tell(credential, values);
    return values;
  }

  async #read({ id, auth, source }: Credential): Promise<SecretValues | undefined> {
    if (source?.type === 'authentication_provider') {
      const token = await this.#accounts.token(source.provider_id, source.scopes);
      return token === undefined ? undefined : { [valueFields(auth)[0].name]: token };
    }
    const stored = await this.#secrets.get(keyOf(id));
    return stored === undefined ? undefined : parse(stored);
  }

  #tell(credential: Credential, values: SecretValues): void {
    const { id, vault_id } = credential;
    const name = { credential_id: id, vault_id, name: credentialName(credential) };
    this.#redactor.know(keyOf(id), name, Object.values(values));
  }

  async #changed(id: string): Promise<void> {
    const credential = this.#living().find((one) => one.id === id);
    if (credential) await this.#learn(credential);
  }

  /** A storage that is locked now is asked again when the value is used. */
  async #learn(credential: Credential): Promise<void> {
    await Promise.resolve(this.#values(credential)).catch(() => undefined);
  }
}

const isStored = ({ source }: CredentialDefinition): boolean => (source?.type ?? 'stored') === 'stored';

function withoutExpiry(auth: CredentialAuth): CredentialAuth {
  if (auth.type !== 'mcp_oauth') return auth;
  const { expires_at: _, ...rest } = auth;
  return rest;
}

function parse(text: string): SecretValues | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return undefined;
    const entries = Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
    return Object.fromEntries(entries);
  } catch {
    return undefined;
  }
}
