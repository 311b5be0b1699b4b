import { mkdtemp, realpath } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new temporary folder, its path without links. Whoever asks for it removes it. */
export const makeFolder = async (prefix: string): Promise<string> => mkdtemp(join(await realpath(tmpdir()), prefix));
