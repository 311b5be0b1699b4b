import { findNodeAtLocation, type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser';
import * as vscode from 'vscode';
import type { FieldProblem } from '../../protocol/environment-rules.ts';
import { messageOf } from '../../protocol/errors.ts';
import type { Project } from '../project.ts';
import { problemsIn, saveDefinition } from './definitions.ts';

export const ENVIRONMENT_SCHEME = 'drover-environment';
/** After so many ms without a key the document is looked through. */
const CHECK_MS = 250;

interface Opened {
  project: Project;
  /** Absent until a new one has been saved. */
  id: string | undefined;
  text: string;
  changed: number;
}

/**
 * Environments as JSON documents: saving one saves the environment. What is wrong stands at the place it is about, and
 * as long as something is, nothing is saved.
 */
export class EnvironmentFiles implements vscode.FileSystemProvider, vscode.Disposable {
  readonly #opened = new Map<string, Opened>();
  readonly #changes = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly #problems = vscode.languages.createDiagnosticCollection('drover environment');
  readonly #subscriptions: vscode.Disposable[];
  readonly #saved: (project: Project, name: string) => void;
  readonly #checks = new Map<string, NodeJS.Timeout>();
  #count = 0;
  readonly onDidChangeFile = this.#changes.event;

  /** `saved` is told of every environment that was saved. */
  constructor(saved: (project: Project, name: string) => void) {
    this.#saved = saved;
    const ours = (document: vscode.TextDocument) => document.uri.scheme === ENVIRONMENT_SCHEME;
    this.#subscriptions = [
      vscode.workspace.registerFileSystemProvider(ENVIRONMENT_SCHEME, this, { isCaseSensitive: true }),
      vscode.workspace.onDidChangeTextDocument(({ document }) => ours(document) && this.#later(document)),
      vscode.workspace.onDidCloseTextDocument((document) => {
        if (ours(document)) this.#close(document.uri);
      }),
      this.#problems,
      this.#changes,
    ];
  }

  /** Opens a definition, right or wrong, for editing. */
  async open(project: Project, definition: unknown, id: string | undefined): Promise<vscode.TextDocument> {
    this.#count += 1;
    const uri = vscode.Uri.from({ scheme: ENVIRONMENT_SCHEME, path: `/${this.#count}/environment.json` });
    const text = `${JSON.stringify(definition, null, 2)}\n`;
    this.#opened.set(uri.toString(), { project, id, text, changed: Date.now() });
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, { preview: false });
    await this.#check(document);
    return document;
  }

  stat(uri: vscode.Uri): vscode.FileStat {
    const { text, changed } = this.#at(uri);
    return { type: vscode.FileType.File, ctime: 0, mtime: changed, size: Buffer.byteLength(text) };
  }

  readFile(uri: vscode.Uri): Uint8Array {
    return new TextEncoder().encode(this.#at(uri).text);
  }

  async writeFile(uri: vscode.Uri, content: Uint8Array): Promise<void> {
    const opened = this.#at(uri);
    const text = new TextDecoder().decode(content);
    const found = await look(opened, text);
    this.#problems.set(uri, found.diagnostics);
    const count = found.diagnostics.length;
    if (count > 0)
      throw vscode.FileSystemError.Unavailable(
        `The environment was not saved: ${count === 1 ? 'one thing needs' : `${count} things need`} to be corrected, see the Problems view.`,
      );
    const { id, name } = await saveDefinition(opened.project, found.value, opened.id).catch((error: unknown) => {
      throw vscode.FileSystemError.Unavailable(messageOf(error));
    });
    this.#opened.set(uri.toString(), { ...opened, id, text, changed: Date.now() });
    this.#changes.fire([{ type: vscode.FileChangeType.Changed, uri }]);
    this.#saved(opened.project, name);
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined);
  }

  readDirectory(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  createDirectory(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  delete(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  rename(): never {
    throw vscode.FileSystemError.NoPermissions();
  }

  dispose(): void {
    for (const timer of this.#checks.values()) clearTimeout(timer);
    for (const one of this.#subscriptions) one.dispose();
  }

  #at(uri: vscode.Uri): Opened {
    const opened = this.#opened.get(uri.toString());
    if (!opened)
      throw vscode.FileSystemError.FileNotFound('Open the environment again: “Drover: Manage Environments”.');
    return opened;
  }

  #close(uri: vscode.Uri): void {
    this.#problems.delete(uri);
    this.#opened.delete(uri.toString());
  }

  #later(document: vscode.TextDocument): void {
    const key = document.uri.toString();
    clearTimeout(this.#checks.get(key));
    this.#checks.set(
      key,
      setTimeout(() => {
        this.#checks.delete(key);
        void this.#check(document).catch(() => undefined);
      }, CHECK_MS),
    );
  }

  async #check(document: vscode.TextDocument): Promise<void> {
    const opened = this.#opened.get(document.uri.toString());
    if (!opened) return;
    const { diagnostics } = await look(opened, document.getText());
    if (!document.isClosed) this.#problems.set(document.uri, diagnostics);
  }
}

/** What is wrong in a text, each at its place, and what the text says. */
async function look(
  { project, id }: Opened,
  text: string,
): Promise<{ value: unknown; diagnostics: vscode.Diagnostic[] }> {
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors);
  if (errors.length > 0 || !tree) {
    const broken = errors.map((error) => at(text, error.offset, error.length, words(printParseErrorCode(error.error))));
    return { value: undefined, diagnostics: broken.length > 0 ? broken : [at(text, 0, 0, 'There is nothing here.')] };
  }
  const value: unknown = JSON.parse(text);
  const problems = await problemsIn(project, value, id);
  return { value, diagnostics: problems.map((problem) => placed(text, tree, problem)) };
}

/** At the value of the field; one that is missing at what should have it. */
function placed(text: string, tree: Node, { field, message }: FieldProblem): vscode.Diagnostic {
  const path = field === '' ? [] : field.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  for (let length = path.length; length >= 0; length--) {
    const node = length === 0 ? tree : findNodeAtLocation(tree, path.slice(0, length));
    if (!node) continue;
    const whole = node.type === 'object' && length < path.length ? 1 : node.length;
    return at(text, node.offset, whole, length === path.length ? message : `${field}: ${message}`);
  }
  return at(text, 0, 1, `${field}: ${message}`);
}

function at(text: string, offset: number, length: number, message: string): vscode.Diagnostic {
  const diagnostic = new vscode.Diagnostic(
    new vscode.Range(position(text, offset), position(text, offset + length)),
    message,
  );
  diagnostic.source = 'Drover';
  return diagnostic;
}

function position(text: string, offset: number): vscode.Position {
  const lines = text.slice(0, offset).split('\n');
  return new vscode.Position(lines.length - 1, lines.at(-1)?.length ?? 0);
}

/** `CommaExpected` as words. */
const words = (code: string): string => `${code.replaceAll(/([a-z])([A-Z])/g, '$1 $2').toLowerCase()}.`;
