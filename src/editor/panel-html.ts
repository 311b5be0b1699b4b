import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';

/** Where the panel's files are. */
export const panelFiles = (extension: vscode.Uri): vscode.Uri => vscode.Uri.joinPath(extension, 'dist', 'webview');

/** The panel's page. */
export const panelHtml = (webview: vscode.Webview, extension: vscode.Uri): string =>
  pageHtml(webview, extension, 'panel', 'drover-panel');

/** A page of one element: nothing is loaded but its own script, style sheet and icon font. */
export function pageHtml(webview: vscode.Webview, extension: vscode.Uri, name: string, element: string): string {
  const nonce = randomBytes(18).toString('base64');
  const file = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(panelFiles(extension), name)).toString();
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src ${webview.cspSource} 'nonce-${nonce}'`,
    `font-src ${webview.cspSource}`,
    `img-src ${webview.cspSource} data:`,
  ].join('; ');
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${file(`${name}.css`)}">
<title>Drover</title>
</head>
<body>
<${element}></${element}>
<script nonce="${nonce}" src="${file(`${name}.js`)}"></script>
</body>
</html>`;
}

/** A page that says one sentence, for a panel that has no session to show. */
export function sentenceHtml(sentence: string): string {
  const safe = sentence.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'">
<title>Drover</title>
</head>
<body><main role="alert"><p>${safe}</p></main></body>
</html>`;
}
