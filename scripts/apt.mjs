// @ts-check
// Debian packages, for scripts that run as root on Debian or Ubuntu.

import { readdirSync } from 'node:fs';
import { childEnv, Failed, lastLines, run } from './machine.mjs';

/** Another apt may be at work, such as an unattended upgrade: wait for it, but not for ever. */
const wait = ['-o', 'DPkg::Lock::Timeout=600', '-o', 'Acquire::Retries=2'];

/**
 * Installs packages; the package lists are fetched only where there are none or they are stale.
 * Throws `Failed` with apt's own last words.
 * @param {readonly string[]} packages
 */
export async function aptInstall(packages) {
  const install = () => apt(['install', '-y', '--no-install-recommends', ...packages]);
  let tried = hasLists() ? await install() : null;
  if (tried?.code !== 0) {
    const update = await apt(['update']);
    if (update.code !== 0 && !hasLists()) throw new Failed(`apt-get update failed:\n${lastLines(update.output, 6)}`);
    tried = await install();
  }
  if (tried.code !== 0)
    throw new Failed(`apt-get could not install ${packages.join(', ')}:\n${lastLines(tried.output, 6)}`);
}

/** @param {string[]} args */
const apt = (args) =>
  run('apt-get', [...wait, ...args], { env: childEnv({ DEBIAN_FRONTEND: 'noninteractive' }), timeoutMs: 900_000 });

function hasLists() {
  try {
    return readdirSync('/var/lib/apt/lists').some((name) => /_Packages(\.|$)/.test(name));
  } catch {
    return false;
  }
}
