/** What the person's editor knows of a file. Paths are relative to the workspace folder, links resolved. */
export interface Desk {
  /** It is open with changes that are not saved: whoever writes it now makes the person lose one or the other. */
  unsaved(path: string): Promise<boolean>;
  /** What the person reads it as, a name as in VS Code's `files.encoding`; undefined where there is no opinion. */
  encoding(path: string): string | undefined;
}

/** Where nobody has an editor open. */
export const noDesk: Desk = { unsaved: async () => false, encoding: () => undefined };
