import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { root } from '../../scripts/machine.mjs';
import { bytesLoadedByActivate } from '../support/built.ts';
import { parts } from '../support/parts.ts';
import { zipEntries } from '../support/zip.ts';

describe('the VSIX', () => {
  let archive: Buffer;
  let files: string[];

  beforeAll(async () => {
    archive = await readFile((await parts()).vsix);
    files = [...zipEntries(archive).keys()].map((name) => name.replace(/^extension\//, ''));
  });

  it('holds what runs and what people read, and nothing else', () => {
    const tops = new Set(files.map((name) => name.split('/')[0]?.toLowerCase()));
    const expected = ['dist', 'media', 'sample', 'package.json', 'readme.md', 'changelog.md', 'license.txt'];
    expect([...tops].sort()).toEqual(['[content_types].xml', 'extension.vsixmanifest', ...expected].sort());
    expect(files.filter((name) => /node_modules|\.map$|\.tsx?$/.test(name))).toEqual([]);
  });

  it('holds what is loaded or run as a file of its own', () => {
    expect(files).toEqual(
      expect.arrayContaining([
        'dist/extension.js',
        'dist/webview/panel.js',
        'dist/webview/panel.css',
        'dist/webview/codicon.ttf',
        'dist/devcontainers-cli/devcontainer.js',
        'dist/devcontainers-cli/dist/spec-node/devContainersSpecCLI.js',
        'dist/vendor/seccomp/x64/apply-seccomp',
        'dist/THIRD-PARTY-NOTICES.txt',
        'sample/.devcontainer/devcontainer.json',
      ]),
    );
  });

  it('is at most 8 MB, of which activation loads at most 1.5 MB', async () => {
    expect(archive.length).toBeLessThanOrEqual(8_000_000);
    expect(await bytesLoadedByActivate()).toBeLessThanOrEqual(1_500_000);
  });

  it('brings the licence of every package that is in it', async () => {
    const notices = await readFile(join(root, 'dist/THIRD-PARTY-NOTICES.txt'), 'utf8');
    for (const name of ['@anthropic-ai/sdk', 'dockerode', 'zod', 'lit', '@vscode/codicons', '@devcontainers/cli']) {
      expect(notices).toMatch(new RegExp(`^${name.replace('/', '\\/')} [0-9.]+ \\(`, 'm'));
    }
  });
});
