import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { z } from 'zod';

/** Days after which an image that no sandbox was made from is taken for forgotten. */
const UNUSED_DAYS = 14;
const DAY_MS = 24 * 60 * 60_000;

const Note = z.object({ image: z.string(), folder: z.string(), used: z.number() });
type Note = z.infer<typeof Note>;

/**
 * The devcontainer tool builds an image for each folder, and never removes one. The tool, which others use too, lets
 * us put no label on all of them, so those that were built for us are noted in a folder of ours.
 */
export class ImageNotes {
  readonly #folder: string;

  constructor(cacheFolder: string) {
    this.#folder = join(cacheFolder, 'images');
  }

  /** A sandbox of this folder was made from the image; nothing is noted if the tool did not build it. */
  used(image: string, folder: string): void {
    const name = builtName(image);
    if (!name) return;
    mkdirSync(this.#folder, { recursive: true });
    const note: Note = { image: name, folder, used: Date.now() };
    writeFileSync(this.#fileOf(name), JSON.stringify(note));
  }

  /**
   * Removes the noted images that no container uses: with `all` every one, else those that were not used for two
   * weeks, or whose folder is gone as `exists` says. Returns how many names were removed.
   */
  async removeUnused(docker: Docker, all: boolean, exists: (folder: string) => boolean): Promise<number> {
    let removed = 0;
    for (const note of this.#all()) {
      if (!all && exists(note.folder) && Date.now() - note.used < UNUSED_DAYS * DAY_MS) continue;
      const tags = await tagsOf(docker, note.image);
      // Without force the engine refuses to remove what a container uses, also one that is none of ours.
      const done = await Promise.allSettled(tags.map((tag) => docker.getImage(tag).remove()));
      removed += done.filter(({ status }) => status === 'fulfilled').length;
      if (done.every(({ status }) => status === 'fulfilled')) rmSync(this.#fileOf(note.image), { force: true });
    }
    return removed;
  }

  #fileOf(image: string): string {
    return join(this.#folder, `${createHash('sha256').update(image).digest('hex').slice(0, 32)}.json`);
  }

  #all(): Note[] {
    let names: string[];
    try {
      names = readdirSync(this.#folder);
    } catch {
      return [];
    }
    return names.flatMap((name) => {
      try {
        return Note.parse(JSON.parse(readFileSync(join(this.#folder, name), 'utf8')));
      } catch {
        // Half written by a process that died.
        return [];
      }
    });
  }
}

/** `vsc-folder-hash`, with `-uid` or `-features` for what the tool builds on top of it; with any tag. */
function builtName(image: string): string | undefined {
  return /^(?:localhost\/)?(vsc-.+-[0-9a-f]{16,64})(-features)?(-uid)?(:.*)?$/.exec(image)?.[1];
}

/** Those built on top come first. */
async function tagsOf(docker: Docker, name: string): Promise<string[]> {
  const images = await docker.listImages({ filters: { reference: [`${name}*`, `localhost/${name}*`] } });
  return images.flatMap((image) => image.RepoTags ?? []).sort((a, b) => b.length - a.length);
}
