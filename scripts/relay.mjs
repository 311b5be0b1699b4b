// @ts-check
// Builds relay/relay.c for the processors container engines run on and puts the programs, a few kilobytes each, into
// src/sandbox/docker/relay-programs.ts. Needed only when relay.c changes; wants gcc and gcc-aarch64-linux-gnu.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './machine.mjs';

const FLAGS = `-Os -static -nostdlib -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables -fno-builtin
  -fno-tree-loop-distribute-patterns -fno-pic -no-pie -Wl,--build-id=none -Wl,-z,norelro -Wl,-z,noexecstack
  -Wl,-z,noseparate-code -Wall -Wextra -Werror -s`.split(/\s+/);
/** By the name an engine gives its processor. */
const COMPILERS = {
  amd64: ['x86_64-linux-gnu-gcc'],
  arm64: ['aarch64-linux-gnu-gcc', '-mno-outline-atomics'],
};

const source = join(root, 'relay/relay.c');
const folder = mkdtempSync(join(tmpdir(), 'drover-relay-'));
try {
  const lines = Object.entries(COMPILERS).map(([processor, [compiler = '', ...more]]) => {
    const out = join(folder, processor);
    const built = spawnSync(compiler, [...FLAGS, ...more, '-o', out, source], { encoding: 'utf8' });
    if (built.status !== 0) throw new Error(`${compiler}: ${built.error?.message ?? built.stderr}`);
    const program = readFileSync(out);
    console.log(`${processor}: ${program.byteLength} bytes`);
    const text = program
      .toString('base64')
      .replace(/.{1,112}/g, "\n    '$&' +")
      .replace(/ \+$/, '');
    return `  ${processor}:${text},\n`;
  });
  const sha = createHash('sha256').update(readFileSync(source)).digest('hex');
  writeFileSync(
    join(root, 'src/sandbox/docker/relay-programs.ts'),
    `/* Made by scripts/relay.mjs from relay/relay.c; not to be edited. */

/** SHA-256 of the source, hex. */
export const RELAY_SOURCE =
  '${sha}';

/** Linux programs in base64, by the name an engine gives its processor. */
export const RELAY_PROGRAMS: Readonly<Record<string, string>> = {
${lines.join('')}};
`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
