import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { SandboxId, SessionId } from '../protocol/ids.ts';
import type { SandboxOwner } from './sandbox.ts';
import { workFolder } from './work-folder.ts';

/** Kept beside a sandbox's folder, out of its reach: what labels are to a container. */
const Note = z.object({
  session: SessionId,
  sandbox: SandboxId,
  workspace: z.string(),
  /** The session's own copy, where it works in one. */
  copy: z.string().optional(),
});
export type Note = z.infer<typeof Note>;

/** The notes on sandboxes that no engine keeps account of. */
export class Noted {
  readonly root: string;

  /** `root`: the folder they are in; made with the first. */
  constructor(root: string) {
    this.root = root;
  }

  /** Notes a sandbox that is about to be made. */
  add(owner: Pick<SandboxOwner, 'session' | 'environment' | 'workspaceFolder'>, sandbox: SandboxId): Note {
    const works = workFolder(owner);
    const copy = works === owner.workspaceFolder ? {} : { copy: works };
    const note: Note = { session: owner.session, sandbox, workspace: owner.workspaceFolder, ...copy };
    mkdirSync(this.root, { recursive: true, mode: 0o700 });
    writeFileSync(this.#file(sandbox), JSON.stringify(note));
    return note;
  }

  /** The owner's, of this id if one is given. */
  find(owner: Pick<SandboxOwner, 'session' | 'workspaceFolder'>, id: SandboxId | undefined): Note | undefined {
    const ofOwner = (note: Note) => note.session === owner.session && note.workspace === owner.workspaceFolder;
    return this.all().find((one) => ofOwner(one) && (!id || one.sandbox === id));
  }

  all(): Note[] {
    let names: string[];
    try {
      names = readdirSync(this.root);
    } catch {
      return [];
    }
    return names.flatMap((name) => {
      try {
        const note = Note.parse(JSON.parse(readFileSync(join(this.root, name), 'utf8')));
        return name === `${note.sandbox}.json` ? note : [];
      } catch {
        // A sandbox's folder, or a note that a process died over: nothing ever ran in that one.
        return [];
      }
    });
  }

  remove(id: SandboxId): void {
    rmSync(this.#file(id), { force: true });
  }

  #file(id: SandboxId): string {
    return join(this.root, `${id}.json`);
  }
}
