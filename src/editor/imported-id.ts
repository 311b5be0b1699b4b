import type { SessionId } from '../protocol/ids.ts';

const PREFIX = 'import_';

/** What a session that is shown from a file is called: a panel is restored by this alone, so it says where the file is. */
export const importedId = (path: string): SessionId =>
  `${PREFIX}${Buffer.from(path).toString('base64url')}` as SessionId;

/** The file's path, or undefined for the id of a session that is in a folder. */
export const importedPath = (id: SessionId): string | undefined =>
  id.startsWith(PREFIX) ? Buffer.from(id.slice(PREFIX.length), 'base64url').toString() : undefined;
