// @ts-check
// Opens Drover on a copy of the bundled sample project, in desktop VS Code if there is one, else in a VS Code server.
// No API key is needed: the built-in rehearsal model plays.
//
//   npm run demo               stays until Ctrl+C
//   npm run demo -- --check    headless: rehearses, checks the outcome in the sandbox, leaves test-results/demo.png
//   npm run demo -- --server   the VS Code server even if desktop VS Code is there

import { mkdir, mkdtemp, readdir, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { copySample } from './copy-sample.mjs';
import { childEnv, Failed, lastLines, npm, onPath, root, run } from './machine.mjs';
import { prepare } from './setup.mjs';
import { quietSettings, startServer } from './vscode.mjs';

const { values: flags } = parseArgs({
  options: { check: { type: 'boolean', default: false }, server: { type: 'boolean', default: false } },
});

/** What is undone at the end, last first. @type {(() => Promise<unknown>)[]} */
const undo = [];
try {
  process.exitCode = await demo();
} catch (error) {
  console.error(error instanceof Failed ? error.message : error);
  process.exitCode = 1;
} finally {
  for (const step of undo.reverse()) await step();
}
process.exit();

/** @returns {Promise<number>} exit code */
async function demo() {
  const desktop = flags.check || flags.server ? null : onPath('code');
  const { have, missing } = await prepare({
    need: [
      'packages',
      'node24',
      ...(desktop ? [] : /** @type {const} */ (['vscode'])),
      ...(flags.check ? /** @type {const} */ (['browser']) : []),
      'engine',
      'image',
    ],
  });
  await prepareHands(have, missing);
  for (const part of /** @type {const} */ (['node24', 'vscode', 'browser'])) {
    if (missing[part]) throw new Failed(missing[part]);
  }
  await packageExtension();
  if (flags.check) return await checkHeadless(have.engine && have.image ? have.image : '');
  const home = await mkdtemp(join(await realpath(tmpdir()), 'drover-demo-'));
  undo.push(() => rm(home, { recursive: true, force: true, maxRetries: 5 }));
  const folder = join(home, 'sample');
  await copySample(folder);
  undo.push(() => removeContainers(folder));

  console.log(`The sample project is in ${folder}.`);
  if (desktop) return await openDesktop(desktop, folder);
  return await openServer(have.vscode ?? '', have.node24 ?? process.execPath, folder);
}

/** Says what the sandbox will be. @param {import('./setup.mjs').Prepared['have']} have @param {import('./setup.mjs').Prepared['missing']} missing */
async function prepareHands(have, missing) {
  if (have.engine && have.image) return;
  const why = missing.engine ?? missing.image;
  const { have: other, missing: neither } = await prepare({ need: ['osSandbox'] });
  if (other.osSandbox)
    console.log(`${why}\nThe agent works in the operating system’s own sandbox instead (${other.osSandbox}).`);
  else throw new Failed(`${why} ${neither.osSandbox}`);
}

/** What Drover made for this folder in the engine: nobody will open the folder again. @param {string} folder */
async function removeContainers(folder) {
  const docker = onPath('docker');
  if (!docker) return;
  const format = '{{.ID}} {{.Image}}';
  const made = await run(docker, ['ps', '-a', '--filter', `label=drover.workspace=${folder}`, '--format', format]);
  if (made.code !== 0) return;
  for (const [id = '', image = ''] of made.output.split('\n').map((line) => line.split(' '))) {
    if (id) await run(docker, ['rm', '--force', '--volumes', id]);
    // The devcontainer tool makes an image per folder.
    if (image.startsWith('vsc-')) await run(docker, ['rmi', image]);
  }
}

/** Builds drover.vsix (and dist/), unless it is newer than all that goes into it. */
async function packageExtension() {
  const inputs = [
    'src',
    'webview',
    'media',
    'sample',
    'package.json',
    'package-lock.json',
    'scripts/build.mjs',
    'README.md',
  ];
  const newest = Math.max(...(await Promise.all(inputs.map((name) => newestIn(join(root, name))))));
  if ((await newestIn(join(root, 'drover.vsix'))) > newest) return;
  console.log('Building and packaging Drover.');
  const { code, output } = await npm(['run', 'package'], { timeoutMs: 180_000 });
  if (code !== 0) throw new Failed(`Drover could not be packaged:\n${lastLines(output, 30)}`);
}

/** Time of the youngest file, ms; 0 if there is none. @param {string} path @returns {Promise<number>} */
async function newestIn(path) {
  const entry = await stat(path).catch(() => null);
  if (!entry?.isDirectory()) return entry?.mtimeMs ?? 0;
  const times = await Promise.all((await readdir(path)).map((name) => newestIn(join(path, name))));
  return Math.max(0, ...times);
}

/** @param {string} code the program @param {string} folder */
async function openDesktop(code, folder) {
  const profile = await mkdtemp(join(tmpdir(), 'drover-code-'));
  undo.push(() => rm(profile, { recursive: true, force: true, maxRetries: 5 }));
  await mkdir(join(profile, 'User'));
  await writeFile(join(profile, 'User', 'settings.json'), JSON.stringify(quietSettings));
  console.log(
    'Opening desktop VS Code. In it, run “Drover: Rehearse” from the command palette. Ctrl+C here ends the demo.',
  );
  const args = [
    '--new-window',
    '--wait',
    '--disable-workspace-trust',
    `--extensionDevelopmentPath=${root}`,
    `--user-data-dir=${profile}`,
    folder,
  ];
  const closed = run(code, args, { timeoutMs: 24 * 3_600_000 });
  await Promise.race([closed, interrupted()]);
  return 0;
}

/** @param {string} server @param {string} node @param {string} folder */
async function openServer(server, node, folder) {
  const vscode = await startServer({ server, node, vsix: join(root, 'drover.vsix') });
  undo.push(vscode.stop);
  console.log(
    `\n  Open  ${vscode.url(folder)}\n\nthen press F1 and run “Drover: Rehearse”. Ctrl+C here ends the demo.`,
  );
  await interrupted();
  return 0;
}

/** @param {string} image where the sample's test is run at the end */
async function checkHeadless(image) {
  const script = join(root, 'scripts', 'demo-check.mjs');
  const { code } = await run('node', [script, image], { env: childEnv(), timeoutMs: 400_000, live: true });
  return code;
}

function interrupted() {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, resolve);
  });
}
