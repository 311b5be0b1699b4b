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
  /** How many may run, and minutes until one that nobody uses is stopped; 0 = no limit. */
  sandboxes: { living: number; idleMinutes: number };
  /** For a folder without a devcontainer.json. Empty: none. */
  defaultImage: string;
  /** URL of the proxy that the machine itself needs, VS Code's own setting or the usual variable; empty: none. */
  httpProxy: string;
  /** Private address ranges (CIDR) that sandboxes may reach. */
  privateRanges: string[];
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
    sandboxes: {
      living: drover.get('sandboxes.maxLiving', 12),
      idleMinutes: drover.get('sandboxes.idleMinutes', 30),
    },
    defaultImage: text('sandboxes.defaultImage'),
    httpProxy:
      vscode.workspace
        .getConfiguration('http', scope ?? null)
        .get('proxy', '')
        .trim() ||
      (process.env.HTTPS_PROXY ?? process.env.https_proxy ?? ''),
    privateRanges: drover.get<string[]>('network.privateRanges', []).filter(isRange),
  };
}

/** One that is none would open nothing, and an address without its length would open too much. */
const isRange = (text: string): boolean =>
  /^([\d.]+\/(3[0-2]|[12]?\d)|[\da-fA-F:]+\/(12[0-8]|1[01]\d|[1-9]?\d))$/.test(text);
