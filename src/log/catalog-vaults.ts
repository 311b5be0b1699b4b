import { mint } from '../protocol/ids.ts';
import {
  Credential,
  type CredentialAuth,
  CredentialDefinition,
  credentialKey,
  credentialName,
  MAX_CREDENTIALS,
  Vault,
  VaultDefinition,
} from '../protocol/vault.ts';
import { add, check, Entries, patched, remove, replace } from './catalog-entries.ts';
import { CatalogError, type CatalogFile } from './catalog-file.ts';

/** What is left out stays; in `metadata` a null takes a key away. */
export interface VaultChange {
  display_name?: string;
  metadata?: Record<string, string | null>;
}

/**
 * The descriptions of the folder's vaults and their credentials. There is no place for a value in them.
 * All calls that change something throw `CatalogError`, naming the field if one is not valid.
 */
export class VaultRecords {
  readonly #file: CatalogFile;
  readonly #now: () => string;
  readonly #entries: Entries;

  constructor(file: CatalogFile, now: () => string) {
    this.#file = file;
    this.#now = now;
    this.#entries = new Entries(file, now);
  }

  /** In the order they were made; archived ones too. */
  vaults(): Vault[] {
    return this.#entries.valid(Vault, this.#file.read().vaults);
  }

  /** Of one vault, or all, in the order they were made; archived ones too. */
  credentials(vault?: string): Credential[] {
    const all = this.#entries.valid(Credential, this.#file.read().credentials);
    return vault === undefined ? all : all.filter((one) => one.vault_id === vault);
  }

  async createVault(definition: VaultDefinition): Promise<Vault> {
    check(VaultDefinition, definition, 'vault');
    const at = this.#now();
    const dates = { created_at: at, updated_at: at, archived_at: null };
    const vault: Vault = { ...VaultDefinition.parse(definition), id: mint.vault(), type: 'vault', ...dates };
    return this.#file.update(({ vaults }) => add(vaults, vault));
  }

  async updateVault(id: string, { display_name, metadata }: VaultChange): Promise<Vault> {
    return this.#file.update(({ vaults }) => {
      const before = this.#entries.living(Vault, vaults, id);
      const kept = patched(before.metadata, metadata);
      const after = { ...before, ...(display_name === undefined ? {} : { display_name }), updated_at: this.#now() };
      check(VaultDefinition, kept ? { ...after, metadata: kept } : after, 'vault');
      return replace(vaults, kept ? { ...after, metadata: kept } : after);
    });
  }

  /** Its credentials must be archived before: their values go first. */
  async archiveVault(id: string): Promise<Vault> {
    return this.#file.update(({ vaults, credentials }) => {
      this.#assertEmpty(credentials, id);
      return this.#entries.archive(Vault, vaults, id);
    });
  }

  /** With the records of its credentials, which must be archived before. */
  async deleteVault(id: string): Promise<void> {
    await this.#file.update((data) => {
      this.#assertEmpty(data.credentials, id);
      const gone = this.#entries.valid(Credential, data.credentials).filter((one) => one.vault_id === id);
      for (const one of gone) remove(data.credentials, one.id);
      remove(data.vaults, id);
    });
  }

  async createCredential(vault: string, definition: CredentialDefinition): Promise<Credential> {
    check(CredentialDefinition, definition, 'credential');
    const at = this.#now();
    return this.#file.update(({ vaults, credentials }) => {
      const { id: vault_id, display_name } = this.#entries.living(Vault, vaults, vault);
      const dates = { created_at: at, updated_at: at, archived_at: null };
      const own = { id: mint.credential(), type: 'vault_credential' as const, vault_id };
      const wanted: Credential = { ...CredentialDefinition.parse(definition), ...own, ...dates };
      const living = this.#living(credentials, vault_id);
      if (living.length >= MAX_CREDENTIALS) {
        throw new CatalogError(
          `The credential was not saved: “${display_name}” has ${MAX_CREDENTIALS} already, the most a vault may have; archive one, or make another vault.`,
        );
      }
      const same = living.find((one) => credentialKey(one) === credentialKey(wanted));
      if (same) {
        throw new CatalogError(
          `The credential was not saved: “${display_name}” has one for the same thing already (${credentialName(same)}); rotate that one, or archive it first.`,
        );
      }
      return add(credentials, wanted);
    });
  }

  /** Notes that the value was put in anew, and how it is renewed from now on. What it is for stays. */
  async touchCredential(id: string, auth?: CredentialAuth): Promise<Credential> {
    return this.#file.update(({ credentials }) => {
      const { refresh_failed_at: _, ...before } = this.#entries.living(Credential, credentials, id);
      const after = { ...before, auth: auth ?? before.auth, updated_at: this.#now() };
      check(CredentialDefinition, after, 'credential');
      if (after.auth.type !== before.auth.type || credentialKey(after) !== credentialKey(before)) {
        throw new CatalogError(
          `“${credentialName(before)}” was left as it is: what a credential is for can’t be changed; make another one.`,
        );
      }
      return replace(credentials, after);
    });
  }

  /** Notes that its token can be renewed no more, until a value is put in anew. */
  async refreshFailed(id: string): Promise<Credential> {
    return this.#file.update(({ credentials }) => {
      const before = this.#entries.living(Credential, credentials, id);
      return replace(credentials, { ...before, refresh_failed_at: this.#now() });
    });
  }

  async archiveCredential(id: string): Promise<Credential> {
    return this.#file.update(({ credentials }) => this.#entries.archive(Credential, credentials, id));
  }

  /** One that is not there is deleted already. */
  async deleteCredential(id: string): Promise<void> {
    await this.#file.update(({ credentials }) => remove(credentials, id));
  }

  #living(credentials: readonly unknown[], vault: string): Credential[] {
    const all = this.#entries.valid(Credential, credentials);
    return all.filter((one) => one.vault_id === vault && one.archived_at === null);
  }

  #assertEmpty(credentials: readonly unknown[], vault: string): void {
    const [first] = this.#living(credentials, vault);
    if (first) {
      throw new CatalogError(
        `The vault was left as it is: “${credentialName(first)}” in it is not archived; archive its credentials first.`,
      );
    }
  }
}
