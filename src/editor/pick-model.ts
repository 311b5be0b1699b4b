import * as vscode from 'vscode';
import type { ModelClient, ModelInfo } from '../harness/model.ts';
import { DroverError, messageOf } from '../protocol/errors.ts';

/** Lets the person choose among the models the API offers, and keeps the choice in the settings. */
export async function pickModel(client: ModelClient, current: string): Promise<void> {
  const models = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: 'Drover: asking which models there are…' },
    () => listed(client),
  );
  const picked = await vscode.window.showQuickPick(
    models.map((model) => ({
      label: model.name,
      description: model.id === current ? `${model.id} (now)` : model.id,
      detail: limits(model),
      id: model.id,
    })),
    { title: 'Drover: model of the built-in agents', matchOnDescription: true },
  );
  if (picked) await keep(picked.id);
}

async function listed(client: ModelClient): Promise<ModelInfo[]> {
  try {
    return await client.list();
  } catch (error) {
    throw new DroverError('model', `The list of models did not come: ${messageOf(error)}`, { cause: error });
  }
}

function limits(model: ModelInfo): string {
  if (model.maxInput === null) return '';
  const output = model.maxOutput === null ? '' : `, ${model.maxOutput.toLocaleString()} out`;
  return `${model.maxInput.toLocaleString()} tokens in${output}`;
}

/** Where a folder has a choice of its own, that one changes; else the person's. */
async function keep(id: string): Promise<void> {
  const settings = vscode.workspace.getConfiguration('drover');
  const own = settings.inspect<string>('model')?.workspaceValue !== undefined;
  await settings.update('model', id, own ? vscode.ConfigurationTarget.Workspace : vscode.ConfigurationTarget.Global);
}
