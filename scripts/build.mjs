// @ts-check
// Bundles the extension host's code and the panel into dist/, with what they need at run time beside them.
// `--watch` keeps at it; `--minify` is what the VSIX ships.

import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { context } from 'esbuild';
import { root } from './machine.mjs';
import { thirdPartyNotices } from './notices.mjs';

const { values: flags } = parseArgs({
  options: { watch: { type: 'boolean', default: false }, minify: { type: 'boolean', default: false } },
});

process.chdir(root);

/** @type {import('esbuild').BuildOptions} */
const shared = {
  bundle: true,
  sourcemap: flags.minify ? false : 'linked',
  minify: flags.minify,
  // An error's class name is part of what a person reads in a report.
  keepNames: true,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
  tsconfig: 'tsconfig.json',
};

/** CommonJS packages inside an ES module still call `require` and read `__dirname`. */
const banner = `import { createRequire as __createRequire } from 'node:module';
import { fileURLToPath as __fileURLToPath } from 'node:url';
import { dirname as __dirnameOf } from 'node:path';
const require = __createRequire(import.meta.url);
const __filename = __fileURLToPath(import.meta.url);
const __dirname = __dirnameOf(__filename);`;

/** @type {import('esbuild').BuildOptions} */
const host = {
  ...shared,
  entryPoints: { extension: 'src/extension.ts' },
  outdir: 'dist',
  platform: 'node',
  target: 'node22',
  // Some CommonJS builds (jsonc-parser's) load their parts in a way no bundler follows; their ES modules are fine.
  mainFields: ['module', 'main'],
  format: 'esm',
  // Rarely used parts are loaded on need: a dynamic import becomes a chunk of its own.
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  external: ['vscode', 'cpu-features', '*.node'],
  banner: { js: banner },
};

/** @type {import('esbuild').BuildOptions} */
const panel = {
  ...shared,
  entryPoints: { panel: 'webview/panel.ts', environment: 'webview/environment/environment.ts' },
  outdir: 'dist/webview',
  platform: 'browser',
  target: 'es2022',
  format: 'iife',
  loader: { '.ttf': 'file' },
  assetNames: '[name]',
};

/**
 * What is run or read as a file of its own and so can't be in a bundle: from where, to where under dist/.
 * @type {[from: string, to: string][]}
 */
const copies = [
  // The devcontainer CLI is a program; it finds its Dockerfile and its version beside itself.
  ...['package.json', 'devcontainer.js', 'dist', 'scripts', 'LICENSE.txt', 'ThirdPartyNotices.txt'].map(
    (name) => /** @type {[string, string]} */ ([`@devcontainers/cli/${name}`, `devcontainers-cli/${name}`]),
  ),
  // The OS sandbox starts programs under this filter; it looks for it one folder above the chunk it is in.
  ['@anthropic-ai/sandbox-runtime/vendor/seccomp', 'vendor/seccomp'],
];

await rm('dist', { recursive: true, force: true });
/** @type {import('esbuild').Metafile[]} */
const metafiles = [];
for (const options of [host, panel]) {
  const build = await context(options);
  const { metafile } = await build.rebuild();
  if (metafile) metafiles.push(metafile);
  if (flags.watch) await build.watch();
  else await build.dispose();
}
for (const [from, to] of copies) {
  const target = join('dist', to);
  await mkdir(dirname(target), { recursive: true });
  await cp(join('node_modules', from), target, { recursive: true, filter: (file) => !/\.(ts|map)$/.test(file) });
}
await writeFile(
  'dist/THIRD-PARTY-NOTICES.txt',
  await thirdPartyNotices(
    metafiles,
    copies.map(([from]) => from),
  ),
);
// For the benchmark: which files loading the extension reads.
await mkdir('.cache', { recursive: true });
await writeFile('.cache/bundle.json', JSON.stringify({ outputs: metafiles[0]?.outputs }));
if (flags.watch) console.log('Watching.');
