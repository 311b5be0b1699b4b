// Bundles the extension host's code and the panel. `--watch` keeps at it; `--minify` is what the VSIX ships.

import { rm } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { context } from 'esbuild';

const { values: flags } = parseArgs({
  options: { watch: { type: 'boolean', default: false }, minify: { type: 'boolean', default: false } },
});

const shared = {
  bundle: true,
  sourcemap: flags.minify ? false : 'linked',
  minify: flags.minify,
  logLevel: 'info',
  tsconfig: 'tsconfig.json',
};

/** CommonJS packages inside an ES module still call `require` and read `__dirname`. */
const banner = `import { createRequire as __createRequire } from 'node:module';
import { fileURLToPath as __fileURLToPath } from 'node:url';
import { dirname as __dirnameOf } from 'node:path';
const require = __createRequire(import.meta.url);
const __filename = __fileURLToPath(import.meta.url);
const __dirname = __dirnameOf(__filename);`;

const host = {
  ...shared,
  entryPoints: { extension: 'src/extension.ts' },
  outdir: 'dist',
  platform: 'node',
  target: 'node22',
  format: 'esm',
  // Rarely used parts are loaded on need: a dynamic import becomes a chunk of its own.
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  external: ['vscode', 'cpu-features', '*.node'],
  banner: { js: banner },
};

const panel = {
  ...shared,
  entryPoints: { panel: 'webview/panel.ts' },
  outdir: 'dist/webview',
  platform: 'browser',
  target: 'es2022',
  format: 'iife',
  loader: { '.ttf': 'file' },
  assetNames: '[name]',
};

await rm('dist', { recursive: true, force: true });
for (const options of [host, panel]) {
  const build = await context(options);
  if (flags.watch) {
    await build.watch();
  } else {
    await build.rebuild();
    await build.dispose();
  }
}
