import { setTimeout as sleep } from 'node:timers/promises';
import * as vscode from 'vscode';
import { Callback } from '../vault/mcp-callback.ts';
import { logIn, type NewLogin } from '../vault/mcp-login.ts';
import { VaultError } from '../vault/values.ts';

/** How long a person may take in the browser, in ms. */
const PATIENCE_MS = 10 * 60_000;

/** Logs a person in at an MCP server in their browser. Undefined if they changed their mind. Throws `VaultError`. */
export async function logInWithBrowser(serverUrl: string): Promise<NewLogin | undefined> {
  const callback = await Callback.open();
  try {
    // Where the window is on another machine than this, VS Code opens a way between the two.
    const back = await vscode.env.asExternalUri(vscode.Uri.parse(callback.url));
    return await vscode.window.withProgress(
      {
        location: vscode.ProgressLocation.Notification,
        title: `Logging in at ${new URL(serverUrl).host} in your browser…`,
        cancellable: true,
      },
      (_, cancelled) =>
        logIn(serverUrl, {
          redirectUrl: back.toString(true),
          visit: (url, state) => visit(callback, url, state, cancelled),
        }),
    );
  } finally {
    await callback.close();
  }
}

async function visit(
  callback: Callback,
  url: URL,
  state: string,
  cancelled: vscode.CancellationToken,
): Promise<URLSearchParams | undefined> {
  const away = new AbortController();
  const listening = cancelled.onCancellationRequested(() => away.abort());
  const waiting = callback.wait(state, away.signal);
  waiting.catch(() => undefined);
  try {
    if (!(await openPage(url))) return undefined;
    const late = sleep(PATIENCE_MS, 'late' as const, { signal: away.signal });
    const came = await Promise.race([waiting, late]);
    if (came !== 'late') return came;
    throw new VaultError('You were not logged in: nothing came back from the browser for ten minutes; try again.');
  } catch (error) {
    if (cancelled.isCancellationRequested) return undefined;
    throw error;
  } finally {
    away.abort();
    listening.dispose();
  }
}

/** As text: a `Uri` is written anew on its way, with other escapes than the server's. VS Code takes both; its types know one. */
const openPage = (url: URL): Thenable<boolean> => vscode.env.openExternal(url.href as unknown as vscode.Uri);
