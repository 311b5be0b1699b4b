import * as vscode from 'vscode';

const NAME = 'drover.apiKey';

/** The API key: in VS Code's secret storage, or else in the host's environment. It goes to the model client and nowhere else. */
export class SecretKey {
  readonly #secrets: vscode.SecretStorage;

  constructor(secrets: vscode.SecretStorage) {
    this.#secrets = secrets;
  }

  async get(): Promise<string | undefined> {
    return (await this.#secrets.get(NAME)) ?? (process.env.ANTHROPIC_API_KEY || undefined);
  }

  /** Asks for a key and keeps it; an empty one removes what is kept. Says what happened: undefined if the person changed their mind. */
  async ask(): Promise<'stored' | 'removed' | undefined> {
    const stored = (await this.#secrets.get(NAME)) !== undefined;
    const value = await vscode.window.showInputBox({
      title: 'Drover: API key for Claude',
      password: true,
      ignoreFocusOut: true,
      placeHolder: 'sk-ant-…',
      prompt: stored
        ? 'A key is stored. Type another to replace it, or leave this empty to remove it.'
        : 'Kept in VS Code’s secret storage; it never reaches a sandbox, a model or a log.',
      validateInput: (text) => (/\s/.test(text.trim()) ? 'A key has no spaces in it.' : undefined),
    });
    if (value === undefined) return undefined;
    const key = value.trim();
    if (key) await this.#secrets.store(NAME, key);
    else await this.#secrets.delete(NAME);
    return key ? 'stored' : 'removed';
  }
}
