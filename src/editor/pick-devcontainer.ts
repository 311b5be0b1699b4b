import * as vscode from 'vscode';
import type { Environment } from '../protocol/environment.ts';
import { configurations, readConfig } from '../sandbox/docker/devcontainer-config.ts';
import type { Project } from './project.ts';

/**
 * Asks which of a folder's several devcontainers a session is to use; the environment as it is where there is nothing
 * to ask. Undefined if the person changed their mind.
 */
export async function withDevcontainer(project: Project, environment: Environment): Promise<Environment | undefined> {
  const { config } = environment;
  if (config.type !== 'devcontainer' || config.path !== undefined) return environment;
  const found = configurations(project.path);
  if (found.length === 0) return environment;
  const picked = await vscode.window.showQuickPick(
    found.map((path) => ({ label: nameOf(project, path), description: path, path })),
    { title: `Drover: which devcontainer of ${project.name}?` },
  );
  return picked && { ...environment, config: { ...config, path: picked.path } };
}

/** What the file calls itself, or else its folder's name. */
function nameOf(project: Project, path: string): string {
  const folder = path.split('/').at(-2) ?? path;
  try {
    const { name } = readConfig(vscode.Uri.joinPath(project.uri, path).fsPath, path);
    return typeof name === 'string' && name ? name : folder;
  } catch {
    // It is broken: that is said, with the line, when it is used.
    return folder;
  }
}
