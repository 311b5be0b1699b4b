import * as vscode from 'vscode';

/** The settings as they are now, for one workspace folder. Read each time: a change counts from the next request on. */
export interface Settings {
  model: string;
  /** Empty: the SDK's own default. */
  baseUrl: string;
  /** Names; empty: ask. */
  defaultAgent: string;
  defaultEnvironment: string;
  contextStrategy: string;
  /** Empty: found by the sandbox provider. */
  dockerHost: string;
}

export function settings(scope?: vscode.Uri): Settings {
  const drover = vscode.workspace.getConfiguration('drover', scope ?? null);
  const text = (name: string) => drover.get<string>(name, '').trim();
  return {
    model: text('model'),
    baseUrl: text('baseUrl'),
    defaultAgent: text('defaultAgent'),
    defaultEnvironment: text('defaultEnvironment'),
    contextStrategy: text('contextStrategy'),
    dockerHost: text('docker.host'),
  };
}
