import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { hostPath } from '../../src/editor/host-path.ts';
import { PanelMemory } from '../../src/editor/panel-memory.ts';
import { PANEL_TYPE, Panels } from '../../src/editor/panels.ts';
import { PreviewBuffer } from '../../src/editor/preview-buffer.ts';
import { type EventId, mint } from '../../src/protocol/ids.ts';
import type { Preview } from '../../src/protocol/panel.ts';
import { Redactor } from '../../src/vault/redactor.ts';
import { eventually } from '../support/eventually.ts';
import { Stage } from './stage.ts';

/** What VS Code gives an extension to remember things in. */
class Memento implements vscode.Memento {
  readonly #values = new Map<string, unknown>();
  keys = () => [...this.#values.keys()];
  get<T>(key: string): T | undefined;
  get<T>(key: string, fallback: T): T;
  get<T>(key: string, fallback?: T): T | undefined {
    return this.#values.has(key) ? (this.#values.get(key) as T) : fallback;
  }
  async update(key: string, value: unknown): Promise<void> {
    this.#values.set(key, value);
  }
}

const ourTabs = () =>
  vscode.window.tabGroups.all
    .flatMap(({ tabs }) => tabs)
    .filter(({ input }) => input instanceof vscode.TabInputWebview && input.viewType.endsWith(PANEL_TYPE));

function panelsOf(stage: Stage, memory = new PanelMemory(new Memento())): Panels {
  const found = vscode.extensions.getExtension('drover.drover');
  assert.ok(found);
  const nothing = async () => undefined;
  const actions = {
    send: nothing,
    answer: nothing,
    interrupt: nothing,
    showDiff: nothing,
    checkpoint: nothing,
    reveal: nothing,
    run: nothing,
  };
  return new Panels(found.extensionUri, stage.sessions, actions, memory, new Redactor());
}

describe('A panel', () => {
  afterEach(() => vscode.commands.executeCommand('workbench.action.closeAllEditors'));

  it('is restored by the id of its session alone', async () => {
    await using stage = await Stage.open();
    const { session } = await stage.asking({ name: 'bash', input: { command: 'true' } });
    const panels = panelsOf(stage);
    const tab = vscode.window.createWebviewPanel(PANEL_TYPE, 'from before', vscode.ViewColumn.Active);
    await panels.restore(tab, { sessionId: session.id });
    assert.equal(tab.title, 'A session that asks · waiting for you');
    assert.match(tab.webview.html, /script-src 'nonce-[^']+'/);
    assert.doesNotMatch(tab.webview.html, /unsafe/);
    assert.equal(panels.visible(session), true);
    panels.dispose();
  });

  it('says so where its session is gone, whatever was saved', async () => {
    await using stage = await Stage.open();
    const panels = panelsOf(stage);
    for (const state of [{ sessionId: mint.session() }, { sessionId: '../../etc' }, 'rubbish', null, undefined]) {
      const tab = vscode.window.createWebviewPanel(PANEL_TYPE, 'from before', vscode.ViewColumn.Active);
      await panels.restore(tab, state);
      assert.match(tab.webview.html, /is not in this folder any more/);
    }
    panels.dispose();
  });

  it('of a host that died is replaced by a live one, once', async () => {
    await using stage = await Stage.open();
    const { session } = await stage.asking({ name: 'bash', input: { command: 'true' } });
    const memory = new PanelMemory(new Memento());
    const dead = panelsOf(stage, memory);
    dead.open(session);
    await eventually('the tab', 5000, () => ourTabs().length === 1);
    dead.dispose();

    const panels = panelsOf(stage, memory);
    await panels.replaceOrphans();
    await eventually('one tab, with a live panel', 5000, () => ourTabs().length === 1 && panels.visible(session));
    panels.dispose();
  });
});

describe('What streams to a panel', () => {
  const thread = mint.thread();
  const request = mint.event();
  const start = (id: EventId): Preview => ({ type: 'start', thread, request, id, block: 'message' });
  const delta = (id: EventId, text: string): Preview => ({ type: 'delta', thread, id, text });

  it('is sent in few messages, in order, and nothing of it is lost', async () => {
    const sent: Preview[] = [];
    const buffer = new PreviewBuffer((preview) => sent.push(preview));
    const id = mint.event();
    buffer.add(start(id));
    for (let i = 0; i < 200; i += 1) buffer.add(delta(id, `${i},`));
    await eventually('the pieces', 1000, () => sent.some((one) => one.type === 'delta' && one.text.endsWith('199,')));
    const text = sent.map((one) => (one.type === 'delta' ? one.text : '')).join('');
    assert.equal(text, Array.from({ length: 200 }, (_, i) => `${i},`).join(''));
    assert.ok(sent.length < 10, `${sent.length} messages`);
    buffer.dispose();
  });

  it('is there as a whole for a panel that is opened in the middle, and no longer once the request is over', () => {
    const buffer = new PreviewBuffer(() => undefined);
    const id = mint.event();
    buffer.add(start(id));
    buffer.add(delta(id, 'one '));
    buffer.add(delta(id, 'two'));
    assert.deepEqual(buffer.replay(), [start(id), delta(id, 'one two')]);
    buffer.add({ type: 'end', thread, request });
    assert.deepEqual(buffer.replay(), []);
    buffer.dispose();
  });
});

describe('A path that an agent names', () => {
  it('is found where the folder is, and nowhere else', async () => {
    await using stage = await Stage.open();
    const { project } = stage;
    const at = (path: string) => hostPath(project.path, path)?.slice(project.path.length);
    assert.equal(at('src/a.js'), '/src/a.js');
    assert.equal(at('./src/../b.js'), '/b.js');
    assert.equal(at('/workspaces/anything/src/a.js'), '/src/a.js');
    assert.equal(at('/workspace/a.js'), '/a.js');
    assert.equal(at(`${project.path}/a.js`), '/a.js');
    for (const outside of ['/etc/passwd', '../a.js', '/workspaces/x/../../etc/passwd', `${project.path}-other/a.js`]) {
      assert.equal(at(outside), undefined, outside);
    }
  });
});
