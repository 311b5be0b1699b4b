import * as vscode from 'vscode';
import type { Environment } from '../protocol/environment.ts';
import { messageOf } from '../protocol/errors.ts';
import type { Check } from '../sandbox/sandbox.ts';
import type { App } from './app.ts';
import type { Project } from './project.ts';
import { needTrust } from './refusal.ts';
import { settings } from './settings.ts';

/**
 * Tries what a session needs, from the engine to the model, and opens a report that can be sent to somebody: nothing
 * secret is in it, neither a key nor what a vault holds, nor a password in an address.
 */
export async function diagnose(app: App): Promise<void> {
  const project = await app.projects.choose();
  if (!project) return;
  needTrust();
  const report = await vscode.window.withProgress(
    {
      location: vscode.ProgressLocation.Notification,
      title: 'Drover: looking at what runs the sessions',
      cancellable: true,
    },
    (progress, cancel) => examineAll(app, project, (message) => progress.report({ message }), cancel),
  );
  const content = withoutPasswords(app.secrets.redactor.text(report, () => undefined));
  const document = await vscode.workspace.openTextDocument({ content, language: 'markdown' });
  await vscode.window.showTextDocument(document);
}

async function examineAll(
  app: App,
  project: Project,
  tell: (message: string) => void,
  cancel: vscode.CancellationToken,
): Promise<string> {
  const parts = [about(app, project)];
  const [catalog, engine] = await Promise.all([project.catalog(), project.engine()]);
  for (const environment of catalog.environments().filter((one) => one.archived_at === null)) {
    if (cancel.isCancellationRequested) {
      parts.push('*Cancelled here.*');
      break;
    }
    tell(`the environment “${environment.name}”`);
    const checks = await engine.sandboxes.examine({ environment, workspaceFolder: project.path, onProgress: tell });
    parts.push(section(environment, checks));
  }
  tell('the model');
  parts.push(`## Model\n\n${await modelCheck(app, project)}`);
  return `${parts.join('\n\n')}\n`;
}

function about(app: App, project: Project): string {
  const { baseUrl, dockerHost } = settings(project.uri);
  const rows = {
    Drover: app.version,
    'VS Code': `${vscode.version}${vscode.env.remoteName ? `, through ${vscode.env.remoteName}` : ''}`,
    'Extension host': `${process.platform} ${process.arch}, Node ${process.versions.node}`,
    Folder: project.path,
    'Container engine asked for': dockerHost || process.env.DOCKER_HOST || 'none in particular',
    'Model service': baseUrl || 'Anthropic’s own',
  };
  const lines = Object.entries(rows).map(([name, value]) => `- ${name}: ${value}`);
  return `# Drover: diagnosis\n\n${lines.join('\n')}`;
}

function section(environment: Environment, checks: readonly Check[]): string {
  const lines = checks.map(({ what, ok, text }) => `- ${ok ? '✓' : '✗'} **${what}**: ${text.replaceAll('\n', '\n  ')}`);
  return `## Environment “${environment.name}”\n\n${lines.join('\n')}`;
}

async function modelCheck(app: App, project: Project): Promise<string> {
  const { model } = settings(project.uri);
  if (!(await app.secrets.key())) return '- ✗ **key**: none is stored; “Drover: Set API Key” stores one.';
  try {
    const offered = await (await app.modelClient()).list();
    const has = offered.some((one) => one.id === model);
    return `- ${has ? '✓' : '✗'} **model**: the service answers and offers ${offered.length} models; ${model} is ${has ? 'one of them' : 'not among them'}.`;
  } catch (error) {
    return `- ✗ **model**: ${messageOf(error)}`;
  }
}

/** An address may carry a name and a password before its host. */
const withoutPasswords = (text: string): string => text.replaceAll(/(\w:\/\/[^\s/:@]+):[^\s/@]+@/g, '$1:…@');
