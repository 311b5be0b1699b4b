import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from '../../scripts/machine.mjs';
import { prepare } from '../../scripts/setup.mjs';

/** The real parts a test stands on. */
export interface Parts {
  /** The VS Code server's folder. */
  server: string;
  /** Program of a Chromium. */
  browser: string;
  /** The packaged extension: tests install this, not the source folder. */
  vsix: string;
}

let found: Promise<Parts> | undefined;

/**
 * Finds the parts once per process. `npm test` has prepared them all; a single test that is run by hand gets what it
 * lacks here. Throws with the sentence that says what is missing.
 */
export function parts(): Promise<Parts> {
  found ??= find();
  return found;
}

async function find(): Promise<Parts> {
  const { have, missing } = await prepare({ need: ['browser', 'vscode'] });
  if (!have.vscode || !have.browser) throw new Error(Object.values(missing).join(' '));
  const vsix = join(root, 'drover.vsix');
  if (!existsSync(vsix)) {
    const packaged = await run('npm', ['run', 'package']);
    if (packaged.code !== 0) throw new Error(`npm run package failed:\n${packaged.output}`);
  }
  return { server: have.vscode, browser: have.browser, vsix };
}
