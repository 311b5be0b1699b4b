import { execFile, spawnSync } from 'node:child_process';
import { chown, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureSampleImage } from '../../scripts/image.mjs';
import { type Available, describeWith, engineAvailable, removeDevcontainerImages } from '../support/engine.ts';
import { makeFolder } from '../support/temp.ts';
import { makeImages, SAMPLE } from './rig.ts';
import { asThePerson } from './user-seen.ts';

const CHILD = fileURLToPath(new URL('./user-child.ts', import.meta.url));
const SOCKET = '/var/run/docker.sock';
/** A user that every Linux has, with no rights of its own. */
const USER = 'daemon';
const text = (program: string, ...args: string[]) =>
  spawnSync(program, args, { encoding: 'utf8' }).stdout?.trim() ?? '';

const engine = await engineAvailable();
const parts: Available = engine.ok
  ? {
      ok: process.platform === 'linux' && process.getuid?.() === 0 && text('setpriv', '--version') !== '',
      why: 'only root can become another user, with setpriv',
    }
  : engine;

describeWith(parts, 'a person who is not root but may use the engine', () => {
  let home: string;

  beforeAll(() => makeImages(ensureSampleImage));
  beforeEach(async () => {
    home = await makeFolder('drover-home-');
    await chown(home, Number(text('id', '-u', USER)), Number(text('id', '-g', USER)));
  });
  afterEach(async () => {
    await rm(home, { recursive: true, force: true });
  });

  it('owns what sandboxes write, also where everybody may write and in a devcontainer, and nothing else is changed', async () => {
    const group = text('stat', '-c', '%g', SOCKET);
    const become = [
      '--reuid',
      USER,
      '--regid',
      USER,
      '--groups',
      group,
      process.execPath,
      CHILD,
      SAMPLE,
      'dev',
      `unix://${SOCKET}`,
    ];
    const { stdout } = await promisify(execFile)('setpriv', become, {
      env: { PATH: process.env.PATH, HOME: home, TMPDIR: home, DOCKER_HOST: 'tcp://127.0.0.1:1' },
      timeout: 100_000,
    });
    const uid = Number(text('id', '-u', USER));
    const { workspace, ...seen } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
    removeDevcontainerImages(workspace);
    expect(seen).toEqual(asThePerson(uid, expect.stringContaining(`at unix://${SOCKET} (from DOCKER_HOST)`)));
  }, 120_000);
});
