import { basename, dirname } from 'node:path';
import * as vscode from 'vscode';
import { openExport } from '../log/export/read.ts';
import { ExportStore, ReadOnlyExport } from '../log/export/store.ts';
import type { SessionId } from '../protocol/ids.ts';
import type { Access } from '../protocol/panel.ts';
import type { ToolCall } from '../session/state.ts';
import { importedId } from './imported-id.ts';
import { LiveSession } from './live-session.ts';
import { Project } from './project.ts';

/** A session that is shown from an exported file. Nothing of it is kept in a folder, and nothing can be done to it. */
export class ImportedSession extends LiveSession {
  readonly #path: string;
  readonly #problems: readonly string[];

  private constructor(id: SessionId, project: Project, path: string, problems: readonly string[]) {
    super(id, project, () => undefined);
    this.#path = path;
    this.#problems = problems;
  }

  /** Opens and checks an exported file. Throws `NoExport` if it is none. */
  static async from(path: string): Promise<ImportedSession> {
    const file = await openExport(path);
    const id = importedId(path);
    const folder = { uri: vscode.Uri.file(dirname(path)), name: basename(path) };
    const project = new Project(folder, {
      openStore: () => new ExportStore(path, id, file),
      openCatalog: () => Promise.reject(new ReadOnlyExport()),
      openCheckpoints: () => Promise.reject(new ReadOnlyExport()),
      openEngine: () => Promise.reject(new ReadOnlyExport()),
    });
    const session = new ImportedSession(id, project, path, file.problems);
    await session.open();
    return session;
  }

  override async open(): Promise<void> {
    await super.open();
    this.damage =
      this.#problems.length === 0
        ? null
        : `This file is not what was exported, so do not rely on it: ${this.#problems.join('; ')}.`;
  }

  override get title(): string {
    return `${super.title} (exported)`;
  }

  override access(): Access {
    return { mode: 'read_only', why: `This session was imported from ${this.#path}, to be read only.` };
  }

  /** Nobody can answer here. */
  override get pending(): ToolCall[] {
    return [];
  }
}
