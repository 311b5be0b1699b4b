import * as vscode from 'vscode';
import { Disposables } from '../../protocol/disposable.ts';
import type { Environment } from '../../protocol/environment.ts';
import { definitionOf } from '../../protocol/environment-rules.ts';
import type { Project } from '../project.ts';
import { Refusal } from '../refusal.ts';
import { openForm } from './form.ts';
import { EnvironmentFiles } from './json-files.ts';

const NEW = 'New Environment…';

interface Item extends vscode.QuickPickItem {
  environment?: Environment;
}

const edit = { iconPath: new vscode.ThemeIcon('edit'), tooltip: 'Edit' };
const json = { iconPath: new vscode.ThemeIcon('json'), tooltip: 'Edit as JSON' };
const archive = { iconPath: new vscode.ThemeIcon('archive'), tooltip: 'Archive: new sessions can’t use it any more' };

/** The environments of a window's folders: made, changed and put away by hand. */
export class Environments implements vscode.Disposable {
  readonly #extension: vscode.Uri;
  readonly #failed: (error: unknown) => void;
  readonly #owned = new Disposables();
  #files: EnvironmentFiles | undefined;

  constructor(extension: vscode.Uri, failed: (error: unknown) => void) {
    this.#extension = extension;
    this.#failed = failed;
  }

  /** Opens the form of a new one. */
  create(project: Project): void {
    this.#form(project, undefined);
  }

  /** Asks which one, and opens its form. */
  async edit(project: Project): Promise<void> {
    const all = await living(project);
    if (all.length === 0) throw new Refusal('This folder has no environment; make one with “Drover: New Environment”.');
    const picked = await vscode.window.showQuickPick(all.map(item), { title: 'Drover: edit which environment?' });
    if (picked?.environment) this.#form(project, picked.environment);
  }

  /** Lists them, with what can be done with each. */
  async manage(project: Project): Promise<void> {
    const list = vscode.window.createQuickPick<Item>();
    list.title = `Drover: environments of ${project.name}`;
    list.placeholder = 'Choose one to edit it';
    const fill = async () => {
      const buttons = [edit, json, archive];
      const all = (await living(project)).map((environment) => ({ ...item(environment), buttons }));
      list.items = [...all, { label: `$(add) ${NEW}`, alwaysShow: true }];
    };
    await fill();
    list.onDidAccept(() => {
      const [picked] = list.selectedItems;
      list.hide();
      if (picked) this.#form(project, picked.environment);
    });
    list.onDidTriggerItemButton(({ button, item: { environment } }) => {
      if (!environment) return;
      if (button !== archive) list.hide();
      if (button === edit) this.#form(project, environment);
      else if (button === json) void this.editJson(project, definitionOf(environment), environment.id);
      else void putAway(project, environment).then(fill).catch(this.#failed);
    });
    list.onDidHide(() => list.dispose());
    list.show();
  }

  /** Opens a definition as JSON; saving the document saves it. */
  async editJson(project: Project, definition: unknown, id: string | undefined): Promise<vscode.TextDocument> {
    this.#files ??= this.#owned.add(new EnvironmentFiles((where, name) => told(where, name)));
    return await this.#files.open(project, definition, id);
  }

  dispose(): void {
    this.#owned.dispose();
  }

  #form(project: Project, environment: Environment | undefined): void {
    const panel = openForm({
      extension: this.#extension,
      project,
      ...(environment ? { environment } : {}),
      saved: ({ name }) => told(project, name),
      editJson: (definition) => {
        this.editJson(project, definition, environment?.id).catch(this.#failed);
      },
    });
    this.#owned.add(panel);
  }
}

async function living(project: Project): Promise<Environment[]> {
  return (await project.catalog()).environments().filter((one) => one.archived_at === null);
}

function item(environment: Environment): Item {
  const { name, description, config, workspace, lifetime } = environment;
  const more = [workspace === 'isolated' ? 'own copy' : '', lifetime === 'call' ? 'fresh for each call' : ''];
  const parts = [KIND[config.type], config.type === 'image' ? config.image : '', ...more].filter((part) => part !== '');
  return { label: name, description: parts.join(' · '), detail: description ?? '', environment };
}

const KIND = {
  devcontainer: 'dev container',
  image: 'image',
  os: 'OS sandbox',
  host: '$(warning) no sandbox',
} as const;

async function putAway(project: Project, { id, name }: Environment): Promise<void> {
  const go = 'Archive';
  const detail = 'New sessions can’t use it any more. Those that run keep it. This can’t be taken back.';
  const message = `Archive the environment “${name}”?`;
  if ((await vscode.window.showWarningMessage(message, { modal: true, detail }, go)) !== go) return;
  await (await project.catalog()).archiveEnvironment(id);
}

function told(project: Project, name: string): void {
  const start = 'Start Session';
  void vscode.window
    .showInformationMessage(`Drover: “${name}” is saved; new sessions in ${project.name} can use it.`, start)
    .then((answer) => answer === start && vscode.commands.executeCommand('drover.startSession'));
}
