import * as vscode from 'vscode';
import type { App } from './app.ts';
import { needTrust } from './refusal.ts';

/** Images of the devcontainers project: they have git and a shell, and a user without root. */
const IMAGES = 'mcr.microsoft.com/devcontainers';
const STARTERS = [
  { label: 'Any language', image: `${IMAGES}/base:bookworm` },
  { label: 'Node and TypeScript', image: `${IMAGES}/typescript-node:22-bookworm` },
  { label: 'Python', image: `${IMAGES}/python:3.13-bookworm` },
  { label: 'Go', image: `${IMAGES}/go:1-bookworm` },
  { label: 'Rust', image: `${IMAGES}/rust:1-bookworm` },
  { label: 'Java', image: `${IMAGES}/java:21-bookworm` },
  { label: 'An image of your own…', image: '' },
];

/** Writes a devcontainer.json to start from, and opens it. One that is there already is only opened. */
export async function createDevcontainer(app: App, given?: string): Promise<void> {
  const project = await app.projects.choose();
  if (!project) return;
  needTrust();
  const file = vscode.Uri.joinPath(project.uri, '.devcontainer', 'devcontainer.json');
  if (!(await exists(file))) {
    const image = given ?? (await askImage());
    if (!image) return;
    await vscode.workspace.fs.writeFile(file, new TextEncoder().encode(starter(project.name, image)));
  }
  await vscode.window.showTextDocument(file);
}

async function askImage(): Promise<string | undefined> {
  const title = 'Drover: what should the sandboxes of this folder be made from?';
  const rows = STARTERS.map((one) => ({ ...one, detail: one.image }));
  const picked = await vscode.window.showQuickPick(rows, { title });
  if (!picked) return undefined;
  return (
    picked.image || (await vscode.window.showInputBox({ title, prompt: 'An image with sh and coreutils' }))?.trim()
  );
}

const starter = (
  name: string,
  image: string,
): string => `// What Drover’s sandboxes of this folder are made from. VS Code’s Dev Containers read the same file.
// All there is to say: https://containers.dev/implementors/json_reference
{
  "name": ${JSON.stringify(name)},
  "image": ${JSON.stringify(image)},

  // Run once, when the container has been made:
  // "postCreateCommand": "npm install",

  // For every command:
  // "remoteEnv": { "EDITOR": "true" },
}
`;

async function exists(file: vscode.Uri): Promise<boolean> {
  try {
    await vscode.workspace.fs.stat(file);
    return true;
  } catch {
    return false;
  }
}
