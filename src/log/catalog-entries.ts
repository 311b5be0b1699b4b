import type { z } from 'zod';
import { CatalogError, type CatalogFile, fieldProblem } from './catalog-file.ts';

/** What every entry of the catalog has, with one of the two names. */
interface Entry {
  id: string;
  name?: string;
  display_name?: string | undefined;
  archived_at: string | null;
}

/** Reads and changes the lists of the catalog, whatever they are of. */
export class Entries {
  readonly #file: CatalogFile;
  readonly #now: () => string;

  constructor(file: CatalogFile, now: () => string) {
    this.#file = file;
    this.#now = now;
  }

  /** The entries that fit; one that does not stays in the file, and is spoken of. */
  valid<T>(schema: z.ZodType<T>, entries: readonly unknown[]): T[] {
    return entries.filter((entry): entry is T => {
      const result = schema.safeParse(entry);
      if (!result.success)
        this.#file.tell(
          `An entry of the catalog is left out (${nameOf(entry)}${fieldProblem(result.error)}); mend it in catalog.json.`,
        );
      return result.success;
    });
  }

  /** Throws `CatalogError` if there is none, or it is archived. */
  living<T extends Entry>(schema: z.ZodType<T>, entries: readonly unknown[], id: string): T {
    const entry = this.valid(schema, entries).find((one) => one.id === id);
    if (!entry)
      throw new CatalogError(`There is no ${id} in this folder's catalog; it may have been made in another folder.`);
    if (entry.archived_at !== null) {
      throw new CatalogError(`"${entry.name ?? entry.display_name ?? id}" is archived, so it can't be changed.`);
    }
    return entry;
  }

  archive<T extends Entry>(schema: z.ZodType<T>, entries: unknown[], id: string): T {
    const before = this.valid(schema, entries).find((one) => one.id === id);
    if (before && before.archived_at !== null) return before;
    return replace(entries, { ...this.living(schema, entries, id), archived_at: this.#now() });
  }
}

/** Throws `CatalogError` naming the field that is not valid. */
export function check(schema: z.ZodType, value: unknown, what: string): void {
  const result = schema.safeParse(value);
  if (!result.success) {
    throw new CatalogError(`The ${what} was not saved: ${fieldProblem(result.error)}.`, { cause: result.error });
  }
}

export function add<T>(entries: unknown[], entry: T): T {
  entries.push(entry);
  return entry;
}

export function replace<T extends Entry>(entries: unknown[], entry: T): T {
  const index = indexOf(entries, entry.id);
  entries[index] = entry;
  return entry;
}

/** True if there was one. */
export function remove(entries: unknown[], id: string): boolean {
  const index = indexOf(entries, id);
  if (index >= 0) entries.splice(index, 1);
  return index >= 0;
}

const indexOf = (entries: readonly unknown[], id: string): number =>
  entries.findIndex((one) => typeof one === 'object' && one !== null && 'id' in one && one.id === id);

/** In `metadata` a null takes a key away. */
export function patched(
  before: Record<string, string> | undefined,
  change: Record<string, string | null> | undefined,
): Record<string, string> | undefined {
  if (!change) return before;
  const kept = Object.entries({ ...before, ...change });
  return Object.fromEntries(kept.filter((entry): entry is [string, string] => entry[1] !== null));
}

const nameOf = (entry: unknown): string => {
  if (typeof entry !== 'object' || entry === null) return '';
  if ('name' in entry) return `"${String(entry.name)}": `;
  return 'display_name' in entry ? `"${String(entry.display_name)}": ` : '';
};
