import * as vscode from 'vscode';
import type { CheckpointStore } from '../../sandbox/checkpoints/checkpoints.ts';

export const BLOB_SCHEME = 'drover-checkpoint';

/** A file of a checkpoint as a document that never changes. `path` gives it its name and so its language. */
export const blobUri = (root: string, path: string, blob: string): vscode.Uri =>
  vscode.Uri.from({
    scheme: BLOB_SCHEME,
    path: `/${path.replace(/^\/+/, '')}`,
    query: new URLSearchParams({ root, blob }).toString(),
  });

/** Files as they were kept, to be read: text, pictures and all else alike. */
export class BlobFiles implements vscode.FileSystemProvider, vscode.Disposable {
  readonly onDidChangeFile = new vscode.EventEmitter<vscode.FileChangeEvent[]>().event;
  readonly #stores: (root: string) => Promise<CheckpointStore> | undefined;
  readonly #registration: vscode.Disposable;

  /** @param stores the checkpoints below this `.drover` folder, if it is one of the window's */
  constructor(stores: (root: string) => Promise<CheckpointStore> | undefined) {
    this.#stores = stores;
    this.#registration = vscode.workspace.registerFileSystemProvider(BLOB_SCHEME, this, {
      isReadonly: true,
      isCaseSensitive: true,
    });
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined);
  }

  async stat(uri: vscode.Uri): Promise<vscode.FileStat> {
    const { store, blob } = await this.#find(uri);
    const size = await store.size(blob);
    return { type: vscode.FileType.File, ctime: 0, mtime: 0, size, permissions: vscode.FilePermission.Readonly };
  }

  async readFile(uri: vscode.Uri): Promise<Uint8Array> {
    const { store, blob } = await this.#find(uri);
    return store.blob(blob);
  }

  async #find(uri: vscode.Uri): Promise<{ store: CheckpointStore; blob: string }> {
    const query = new URLSearchParams(uri.query);
    const blob = query.get('blob') ?? '';
    const store = await this.#stores(query.get('root') ?? '');
    if (!store || !/^[0-9a-f]{40,64}$/.test(blob)) throw vscode.FileSystemError.FileNotFound(uri);
    return { store, blob };
  }

  readDirectory(uri: vscode.Uri): never {
    throw vscode.FileSystemError.FileNotADirectory(uri);
  }

  createDirectory(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  writeFile(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  delete(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  rename(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  dispose(): void {
    this.#registration.dispose();
  }
}
