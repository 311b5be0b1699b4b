import { spawnSync } from 'node:child_process';
import { describe } from 'vitest';
import { ensureEngine, ensureOsSandbox } from '../../scripts/engine.mjs';

/** What a real part is, or why it can't be had. */
export interface Available {
  ok: boolean;
  why: string;
}

let engine: Promise<Available> | undefined;
let osSandbox: Promise<Available> | undefined;

/** Whether a container engine answers; one that is installed is started. Throws under CI if none does. */
export const engineAvailable = (): Promise<Available> => {
  engine ??= ensureEngine({ install: false, log: () => {} }).then(needed);
  return engine;
};

/** Whether the operating system's own sandbox can run here. Throws under CI if it can't. */
export const osSandboxAvailable = (): Promise<Available> => {
  osSandbox ??= ensureOsSandbox({ install: false, log: () => {} }).then(needed);
  return osSandbox;
};

function needed(found: Available): Available {
  if (!found.ok && process.env.CI === 'true') throw new Error(`Under CI nothing is skipped, but: ${found.why}`);
  return found;
}

/** A suite that needs a real part: without it every test is skipped, and the suite's name says why. */
export function describeWith(part: Available, name: string, tests: () => void): void {
  if (part.ok) describe(name, tests);
  else describe.skip(`${name} (skipped: ${part.why})`, tests);
}

/** Runs the docker CLI; its output, trimmed. Throws if it fails. */
export function docker(...args: string[]): string {
  const done = spawnSync('docker', args, { encoding: 'utf8', timeout: 60_000 });
  if (done.status !== 0) throw new Error(`docker ${args.join(' ')}: ${done.stderr || done.error?.message}`);
  return done.stdout.trim();
}

/** Removes what carries a label, whatever became of the test. */
export function removeLabelled(label: string): void {
  const containers = docker('ps', '--all', '--quiet', '--filter', `label=${label}`).split('\n').filter(Boolean);
  if (containers.length > 0) docker('rm', '--force', '--volumes', ...containers);
  const networks = docker('network', 'ls', '--quiet', '--filter', `label=${label}`).split('\n').filter(Boolean);
  if (networks.length > 0) docker('network', 'rm', ...networks);
}

/** Removes the images that a devcontainer of this folder was built into. */
export function removeDevcontainerImages(folderName: string): void {
  const reference = `reference=vsc-${folderName.toLowerCase()}-*`;
  const images = docker('images', '--format', '{{.Repository}}:{{.Tag}}', '--filter', reference)
    .split('\n')
    .filter(Boolean);
  if (images.length > 0) docker('rmi', '--force', ...images);
}
