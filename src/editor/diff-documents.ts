import * as vscode from 'vscode';

export const DIFF_SCHEME = 'drover-diff';
/** Texts kept for diffs that may still be open. */
const KEPT = 60;

/** Read-only texts for one side of a diff. A text is fixed when its diff is opened, so what a person reviews never moves. */
export class DiffDocuments implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #texts = new Map<string, string>();
  readonly #registration = vscode.workspace.registerTextDocumentContentProvider(DIFF_SCHEME, this);
  #count = 0;

  /** `path` gives the document its name and so its language. */
  add(path: string, text: string): vscode.Uri {
    this.#count += 1;
    const uri = vscode.Uri.from({
      scheme: DIFF_SCHEME,
      path: `/${path.replace(/^\/+/, '')}`,
      query: String(this.#count),
    });
    this.#texts.set(uri.toString(), text);
    for (const oldest of this.#texts.keys()) {
      if (this.#texts.size <= KEPT) break;
      this.#texts.delete(oldest);
    }
    return uri;
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.#texts.get(uri.toString()) ?? 'This diff is no longer kept; open it again from its session.\n';
  }

  dispose(): void {
    this.#registration.dispose();
  }
}
