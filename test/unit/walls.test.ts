import { spawnSync } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';

const root = join(import.meta.dirname, '../..');
const biome = join(root, 'node_modules/@biomejs/biome/bin/biome');

const Report = z.object({
  diagnostics: z.array(z.object({ message: z.string(), location: z.object({ path: z.string() }) })),
});

/** Two rows may name one file: each gets one of its own. */
const numbered = (file: string, n: number): string => file.replace(/\.ts$/, `${n}.ts`);

/** A file, its only import, and what the walls must say to it. */
const forbidden = [
  ['src/protocol/x.ts', "import { fold } from '../session/fold.ts';", 'protocol/ imports no other room.'],
  ['src/session/x.ts', "import type { SessionStore } from '../log/log.ts';", 'session/ is pure'],
  ['src/session/x.ts', "import { readFile } from 'node:fs/promises';", 'session/ is pure'],
  ['src/protocol/x.ts', "import { randomUUID } from 'node:crypto';", 'protocol/ imports no other room.'],
  ['webview/x.ts', "import { join } from 'node:path';", 'webview/ imports protocol/ and session/ only'],
  ['webview/parts/x.ts', "import { start } from '../../src/harness/harness.ts';", 'webview/ imports protocol/'],
  ['src/log/x.ts', "import { fold } from '../session/fold.ts';", 'log/ imports protocol/ only.'],
  ['src/policy/x.ts', "import type { Toolbox } from '../tools/tools.ts';", 'policy/ imports protocol/ only.'],
  ['src/vault/x.ts', "import type { Toolbox } from '../tools/tools.ts';", 'vault/ imports protocol/ only.'],
  ['src/sandbox/docker/x.ts', "import { bash } from '../../tools/bash.ts';", 'sandbox/ imports protocol/'],
  ['src/sandbox/x.ts', "import { open } from '../vault/secrets.ts';", 'vault/egress.ts only'],
  ['src/tools/x.ts', "import { docker } from '../sandbox/docker/engine.ts';", 'sandbox/sandbox.ts only'],
  ['src/tools/x.ts', "const late = await import('../harness/harness.ts');", 'sandbox/sandbox.ts only'],
  ['src/harness/x.ts', "import { bash } from '../tools/bash.ts';", 'harness/ imports'],
  ['src/harness/x.ts', "import { rules } from '../policy/rules.ts';", 'harness/ imports'],
  ['src/harness/x.ts', "export { activate } from '../extension.ts';", 'harness/ imports'],
  ['src/rehearsal/x.ts', "import { fold } from '../session/fold.ts';", 'rehearsal/ imports protocol/ only.'],
  ['src/harness/x.ts', "import * as vscode from 'vscode';", 'Only editor/ and extension.ts import vscode.'],
  ['src/tools/x.ts', "import type { Uri } from 'vscode';", 'Only editor/ and extension.ts import vscode.'],
  ['webview/x.ts', "import type { Uri } from 'vscode';", 'Only editor/ and extension.ts import vscode.'],
] as const;

const allowed = [
  ['src/session/x.ts', "import type { LogRecord } from '../protocol/record.ts';"],
  ['src/session/deep/x.ts', "import { fold } from '../fold.ts';"],
  ['src/log/x.ts', "import { open } from 'node:fs/promises';"],
  ['src/harness/x.ts', "import { decide } from '../session/session.ts';"],
  ['src/harness/x.ts', "import type { Toolbox } from '../tools/tools.ts';"],
  ['src/harness/x.ts', "import type { Policy } from '../policy/policy.ts';"],
  ['src/harness/x.ts', "import { SandboxLost } from '../sandbox/sandbox.ts';"],
  ['src/tools/x.ts', "import { SandboxLost } from '../sandbox/sandbox.ts';"],
  ['src/sandbox/docker/x.ts', "import { SandboxLost } from '../sandbox.ts';"],
  ['src/sandbox/os/x.ts', "import { SandboxManager } from '@anthropic-ai/sandbox-runtime';"],
  ['src/sandbox/x.ts', "import type { Proxy } from '../vault/egress.ts';"],
  ['webview/parts/x.ts', "import { fold } from '../../src/session/session.ts';"],
  ['src/editor/x.ts', "import * as vscode from 'vscode';"],
  ['src/editor/x.ts', "import { bash } from '../tools/bash.ts';"],
  ['src/extension.ts', "import * as vscode from 'vscode';"],
  ['src/engine.ts', "import { bash } from './tools/bash.ts';"],
] as const;

describe('import walls', () => {
  let folder: string;
  /** The lint's words, by file. */
  let said: Map<string, string>;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'drover-walls-'));
    await copyFile(join(root, 'biome.json'), join(folder, 'biome.json'));
    const files = [...forbidden, ...allowed].map(([file, line], n) => ({ file: numbered(file, n), line }));
    for (const { file, line } of files) {
      await mkdir(dirname(join(folder, file)), { recursive: true });
      await writeFile(join(folder, file), `${line}\n`);
    }
    const rule = '--only=style/noRestrictedImports';
    const lint = spawnSync(
      process.execPath,
      [biome, 'lint', '--vcs-enabled=false', '--reporter=json', '--max-diagnostics=none', rule, '.'],
      { cwd: folder, encoding: 'utf8', env: { ...process.env, BIOME_CONFIG_PATH: join(folder, 'biome.json') } },
    );
    const { diagnostics } = Report.parse(JSON.parse(lint.stdout));
    said = new Map(diagnostics.map(({ location, message }) => [location.path, message]));
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  it.each(forbidden)('%s may not say %s', (file, line, words) => {
    const n = forbidden.findIndex((row) => row[0] === file && row[1] === line);
    expect(said.get(numbered(file, n)) ?? 'nothing').toContain(words);
  });

  it.each(allowed)('%s may say %s', (file, line) => {
    const n = forbidden.length + allowed.findIndex((row) => row[0] === file && row[1] === line);
    expect(said.get(numbered(file, n)) ?? 'nothing').toBe('nothing');
  });
});
