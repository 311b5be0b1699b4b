// @ts-check
// The licences of the packages whose code is in dist/: MIT and its kin ask that their text goes along.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readJson } from './machine.mjs';

/**
 * @param {readonly import('esbuild').Metafile[]} metafiles what was bundled
 * @param {readonly string[]} copied paths under node_modules that were copied
 * @returns {Promise<string>} one section per package, by name
 */
export async function thirdPartyNotices(metafiles, copied) {
  const files = metafiles
    .flatMap((meta) => Object.keys(meta.inputs))
    .concat(copied.map((path) => `node_modules/${path}`));
  const folders = new Set(files.flatMap((file) => packageFolder(file) ?? []));
  const sections = await Promise.all([...folders].map(section));
  return `Drover contains the following third-party software.\n\n${sections.sort().join('\n')}`;
}

/** `node_modules/a/node_modules/@b/c` of a file in it, or null. @param {string} file */
function packageFolder(file) {
  return /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? null;
}

/** @param {string} folder */
async function section(folder) {
  // `licenses` is how it was said once.
  const { name, version, licenses, license = licenses?.[0]?.type } = readJson(join(folder, 'package.json'));
  const texts = (await readdir(folder)).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file)).sort();
  const bodies = await Promise.all(texts.map((file) => readFile(join(folder, file), 'utf8')));
  const body = bodies.length > 0 ? bodies.join('\n').trim() : `Licensed under ${license}.`;
  return `${'='.repeat(80)}\n${name} ${version} (${license})\n${'='.repeat(80)}\n${body}\n`;
}
