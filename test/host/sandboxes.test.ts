import assert from 'node:assert/strict';
import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { Engines } from '../../src/editor/engines.ts';
import { withDevcontainer } from '../../src/editor/pick-devcontainer.ts';
import { DevcontainerWatch, rebuildSandbox } from '../../src/editor/rebuild.ts';
import { Reporter } from '../../src/editor/reporter.ts';
import { SandboxProgress } from '../../src/editor/sandbox-progress.ts';
import { accounts, Secrets } from '../../src/editor/secrets.ts';
import { settings } from '../../src/editor/settings.ts';
import { Emitter } from '../../src/protocol/disposable.ts';
import type { Environment } from '../../src/protocol/environment.ts';
import { mint } from '../../src/protocol/ids.ts';
import { draft } from '../../src/protocol/record.ts';
import { eventually } from '../support/eventually.ts';
import { Stage } from './stage.ts';

const folder = () => {
  const [first] = vscode.workspace.workspaceFolders ?? [];
  assert.ok(first, 'a folder is open');
  return first.uri.fsPath;
};
const shown = () => vscode.window.activeTextEditor?.document;
const closeEditor = () => vscode.commands.executeCommand('workbench.action.closeActiveEditor');

describe('Diagnose', () => {
  it('opens a report on engine, sandboxes and model that holds no secret', async function () {
    this.timeout(180_000);
    await vscode.commands.executeCommand('drover.diagnose');
    const document = shown();
    assert.ok(document);
    assert.equal(document.languageId, 'markdown');
    const text = document.getText();
    assert.match(text, /^# Drover: diagnosis/);
    assert.match(text, /- Drover: \d+\.\d+\.\d+/);
    assert.match(text, /- Extension host: \w+ \w+, Node \d+/);
    assert.match(text, /## Environment “.+”\n\n- [✓✗] \*\*engine\*\*: \S+/);
    assert.match(text, /## Model\n\n- [✓✗] \*\*(key|model)\*\*/);
    assert.doesNotMatch(text, /sk-ant-|password/i);
    await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
  });
});

describe('Create devcontainer.json', () => {
  it('writes one to start from, and never over one that is there', async () => {
    const path = join(folder(), '.devcontainer');
    const file = join(path, 'devcontainer.json');
    const had = await stat(file).then(
      () => true,
      () => false,
    );
    if (had) {
      const before = await vscode.workspace.fs.readFile(vscode.Uri.file(file));
      await vscode.commands.executeCommand('drover.createDevcontainer', 'example/other');
      assert.deepEqual(await vscode.workspace.fs.readFile(vscode.Uri.file(file)), before);
      assert.equal(shown()?.uri.fsPath, file);
      await closeEditor();
      await rm(`${path}.kept`, { recursive: true, force: true });
      await vscode.workspace.fs.rename(vscode.Uri.file(path), vscode.Uri.file(`${path}.kept`));
    }
    try {
      await vscode.commands.executeCommand('drover.createDevcontainer', 'example/image');
      assert.equal(shown()?.uri.fsPath, file);
      const { findConfig, readConfig } = await import('../../src/sandbox/docker/devcontainer-config.ts');
      assert.equal(readConfig(findConfig(folder(), undefined), 'it').image, 'example/image');
      await closeEditor();
    } finally {
      await rm(path, { recursive: true, force: true });
      if (had) await vscode.workspace.fs.rename(vscode.Uri.file(`${path}.kept`), vscode.Uri.file(path));
    }
  });
});

describe('Clean Up', () => {
  it('runs to its end, engine or not', async function () {
    this.timeout(60_000);
    await vscode.commands.executeCommand('drover.cleanUp');
  });
});

describe('Rebuild Sandbox', () => {
  it('takes the sandbox away, so that the next call gets a fresh one', async function () {
    this.timeout(60_000);
    await using stage = await Stage.open();
    const { session } = await stage.asking({ name: 'bash', input: { command: 'true' } });
    await mkdir(join(stage.folder, 'cache'), { recursive: true });
    const sandbox_id = mint.sandbox();
    await stage.actions.write(session, 'a test', () => [
      draft('drover.sandbox_provisioning', { sandbox_id, recipe: 'a test' }),
      draft('drover.sandbox_ready', { sandbox_id, kind: 'os', detail: 'a test', duration_ms: 1 }),
    ]);
    await eventually('the sandbox to show', 10_000, () => session.state?.sandbox === sandbox_id);
    // What labels are to a container: the note of the operating system's sandbox.
    const notes = join(stage.folder, 'cache', 'os');
    await mkdir(join(notes, sandbox_id), { recursive: true });
    const note = { session: session.id, sandbox: sandbox_id, workspace: stage.folder };
    await writeFile(join(notes, `${sandbox_id}.json`), JSON.stringify(note));
    await rebuildSandbox(stage.actions, session);
    await eventually('the sandbox to go', 10_000, () => session.state?.sandbox === null);
    assert.equal(session.state?.sandboxes.get(sandbox_id)?.state, 'removed');
  });
});

describe('At the start of a window', () => {
  it('what a crash left being made is looked for, also where another sandbox of the session went after it', async function () {
    this.timeout(60_000);
    await using stage = await Stage.open();
    const { session } = await stage.asking({ name: 'bash', input: { command: 'true' } });
    const [last, spare] = [mint.sandbox(), mint.sandbox()];
    const writer = await stage.project.store.acquire(session.id, 'a test');
    await writer.append([
      draft('drover.sandbox_provisioning', { sandbox_id: last, recipe: 'a test' }),
      draft('drover.sandbox_provisioning', { sandbox_id: spare, recipe: 'a test' }),
      draft('drover.sandbox_ready', { sandbox_id: last, kind: 'container', detail: 'a test', duration_ms: 1 }),
      draft('drover.sandbox_removed', { sandbox_id: last, reason: 'Its call has ended.' }),
      draft('drover.session_archived', { archived: true }),
    ]);
    await writer.release();
    await eventually('the log to be read', 20_000, async () => {
      await stage.sessions.refreshHolder(session);
      return session.state?.archived === true && session.holder === null;
    });
    assert.equal(session.state?.sandbox, null);
    const kept = new Map<string, unknown>();
    const memory = {
      keys: () => [...kept.keys()],
      get: <T>(key: string, otherwise?: T) => (kept.has(key) ? (kept.get(key) as T) : otherwise),
      update: async (key: string, value: unknown) => void kept.set(key, value),
    };
    const secrets = new Secrets({
      storage: {
        get: async () => undefined,
        store: async () => {},
        delete: async () => {},
        onDidChange: new Emitter<string>().on,
      },
      accounts,
      key: { get: async () => undefined },
      alarm: () => undefined,
    });
    const uri = vscode.Uri.file(stage.folder);
    const host = {
      version: '0.0.0',
      secrets,
      reporter: new Reporter(secrets.redactor),
      extension: uri,
      storage: uri,
      memory: memory as vscode.Memento,
      sessions: () => stage.sessions,
      preview: () => undefined,
    };
    const engines = new Engines(host);
    await engines.reapLeftovers(stage.projects);
    assert.ok(stage.project.running, 'the engine was asked');
    assert.deepEqual([...kept.values()], [[spare]]);
    await engines.close();
    secrets.dispose();
  });
});

describe('A devcontainer whose files change', () => {
  it('is offered to be rebuilt, for the sessions whose sandbox was made from them', async function () {
    this.timeout(60_000);
    await using stage = await Stage.open();
    const file = join(stage.folder, '.devcontainer', 'devcontainer.json');
    await mkdir(join(stage.folder, '.devcontainer'));
    await writeFile(file, '{ "image": "one" }');
    const call = { name: 'bash', input: { command: 'true' } };
    const made = await stage.in({ config: { type: 'devcontainer' } }, call);
    const none = await stage.in({ config: { type: 'devcontainer' } }, call);
    const { session: other } = await stage.asking(call);
    for (const session of [made, other]) {
      const sandbox_id = mint.sandbox();
      await stage.actions.write(session, 'a test', () => [
        draft('drover.sandbox_provisioning', { sandbox_id, recipe: 'a test' }),
        draft('drover.sandbox_ready', { sandbox_id, kind: 'container', detail: 'a test', duration_ms: 1 }),
      ]);
      await eventually('the sandbox to show', 10_000, () => session.state?.sandbox === sandbox_id);
    }
    assert.equal(none.state?.sandbox, null);
    const rebuilt: string[] = [];
    const watch = new DevcontainerWatch(stage.sessions, async ({ id }) => void rebuilt.push(id), [stage.project]);
    try {
      // One that was just made has read the files as they are.
      await new Promise((resolve) => setTimeout(resolve, 4_500));
      await vscode.commands.executeCommand('notifications.clearAll');
      await writeFile(file, '{ "image": "two" }');
      await eventually('the offer to be taken', 20_000, async () => {
        await vscode.commands.executeCommand('notification.acceptPrimaryAction');
        return rebuilt.length > 0;
      });
      assert.deepEqual(rebuilt, [made.id]);
    } finally {
      watch.dispose();
    }
  });
});

describe('A folder with several devcontainers', () => {
  it('asks which one a session is to use, by the names they give themselves', async function () {
    this.timeout(60_000);
    await using stage = await Stage.open();
    for (const [folder, config] of [
      ['api', '{ "name": "The API", "image": "one" }'],
      ['web', '{ "image": "two" }'],
    ] as const) {
      await mkdir(join(stage.folder, '.devcontainer', folder), { recursive: true });
      await writeFile(join(stage.folder, '.devcontainer', folder, 'devcontainer.json'), config);
    }
    const environment = (path?: string): Environment => ({
      id: mint.environment(),
      type: 'environment',
      name: 'Devcontainer',
      config: { type: 'devcontainer', ...(path === undefined ? {} : { path }) },
      created_at: '2026-01-01T00:00:00.000Z',
      updated_at: '2026-01-01T00:00:00.000Z',
      archived_at: null,
    });
    const choose = async (...keys: string[]) => {
      const asked = withDevcontainer(stage.project, environment());
      let answered = false;
      void asked.then(() => {
        answered = true;
      });
      // The list takes a moment to show; keys that come too early go nowhere.
      await new Promise((resolve) => setTimeout(resolve, 700));
      assert.equal(answered, false);
      for (const key of keys) await vscode.commands.executeCommand(key);
      return (await asked)?.config;
    };
    const accept = 'workbench.action.acceptSelectedQuickOpenItem';
    assert.deepEqual(await choose(accept), { type: 'devcontainer', path: '.devcontainer/api/devcontainer.json' });
    assert.deepEqual(await choose('workbench.action.quickOpenSelectNext', accept), {
      type: 'devcontainer',
      path: '.devcontainer/web/devcontainer.json',
    });
    assert.equal(await choose('workbench.action.closeQuickOpen'), undefined);
    // One that is named already is not asked about.
    const named = environment('.devcontainer/web/devcontainer.json');
    assert.equal(await withDevcontainer(stage.project, named), named);
  });
});

describe('The progress of a sandbox', () => {
  it('ends with the sandbox, whether or not it was shown', async () => {
    await using stage = await Stage.open();
    const { session } = await stage.asking({ name: 'bash', input: { command: 'true' } });
    const progress = new SandboxProgress(() => stage.sessions);
    const sandbox_id = mint.sandbox();
    await stage.actions.write(session, 'a test', () => [
      draft('drover.sandbox_provisioning', { sandbox_id, recipe: 'a test' }),
      draft('drover.sandbox_progress', { sandbox_id, lines: ['pulling', 'building'] }),
    ]);
    progress.line(session.id, 'building');
    await stage.actions.write(session, 'a test', () => [
      draft('drover.sandbox_failed', { sandbox_id, message: 'It failed.' }),
    ]);
    await eventually('the failure to show', 10_000, () => session.state?.sandboxes.get(sandbox_id)?.state === 'failed');
    progress.dispose();
  });
});

describe('The settings of sandboxes', () => {
  it('have the values of the manifest', () => {
    assert.deepEqual(settings().sandboxes, { living: 12, idleMinutes: 30 });
    assert.equal(settings().defaultImage, '');
  });
});
