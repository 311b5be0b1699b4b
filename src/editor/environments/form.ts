import * as vscode from 'vscode';
import { EnvironmentInvalid } from '../../log/catalog.ts';
import type { Environment } from '../../protocol/environment.ts';
import type { FormHostMessage, FormPageMessage } from '../../protocol/environment-form.ts';
import { definitionOf, type EnvironmentDefinition, type FieldProblem } from '../../protocol/environment-rules.ts';
import { pageHtml, panelFiles } from '../panel-html.ts';
import type { Project } from '../project.ts';
import { sentence } from '../reporter.ts';
import { problemsIn, saveDefinition } from './definitions.ts';

/** What a new environment begins as: the kind that needs nothing to be known. */
const FRESH: EnvironmentDefinition = { name: '', config: { type: 'devcontainer' } };

export interface FormOptions {
  extension: vscode.Uri;
  project: Project;
  /** The one that is changed; absent: a new one. */
  environment?: Environment;
  saved: (environment: Environment) => void;
  editJson: (definition: unknown) => void;
}

/** Opens the form of an environment in a tab of its own. The page shows; what is right is decided here. */
export function openForm(options: FormOptions): vscode.WebviewPanel {
  const { extension, environment } = options;
  const title = environment ? `Environment: ${environment.name}` : 'New Environment';
  const panel = vscode.window.createWebviewPanel('drover.environment', title, vscode.ViewColumn.Active, {
    enableScripts: true,
    localResourceRoots: [panelFiles(extension)],
    // What is half typed must not be lost when another tab is looked at.
    retainContextWhenHidden: true,
  });
  panel.iconPath = {
    light: vscode.Uri.joinPath(extension, 'media', 'drover-light.svg'),
    dark: vscode.Uri.joinPath(extension, 'media', 'drover-dark.svg'),
  };
  const form = new Form(panel, options);
  panel.webview.onDidReceiveMessage((message: FormPageMessage) => void form.hear(message));
  panel.webview.html = pageHtml(panel.webview, extension, 'environment', 'drover-environment');
  return panel;
}

class Form {
  readonly #panel: vscode.WebviewPanel;
  readonly #options: FormOptions;

  constructor(panel: vscode.WebviewPanel, options: FormOptions) {
    this.#panel = panel;
    this.#options = options;
  }

  async hear(message: FormPageMessage): Promise<void> {
    const { environment, project, editJson } = this.#options;
    switch (message.type) {
      case 'ready': {
        const definition = environment ? definitionOf(environment) : FRESH;
        return this.#send({ type: 'show', definition, existing: environment !== undefined, folder: project.name });
      }
      case 'check':
        return this.#tell(await problemsIn(project, message.definition, environment?.id));
      case 'save':
        return await this.#save(message.definition);
      case 'edit_json':
        this.#panel.dispose();
        return editJson(message.definition);
      case 'cancel':
        return this.#panel.dispose();
    }
  }

  async #save(definition: unknown): Promise<void> {
    const { environment, project, saved } = this.#options;
    try {
      const made = await saveDefinition(project, definition, environment?.id);
      this.#panel.dispose();
      saved(made);
    } catch (error) {
      this.#tell(error instanceof EnvironmentInvalid ? error.problems : [{ field: '', message: sentence(error) }]);
    }
  }

  #tell(problems: readonly FieldProblem[]): void {
    this.#send({ type: 'problems', problems });
  }

  #send(message: FormHostMessage): void {
    void this.#panel.webview.postMessage(message);
  }
}
