import type { ContentBlock } from '../protocol/content.ts';
import type { Environment } from '../protocol/environment.ts';
import type { SessionId } from '../protocol/ids.ts';
import type { Preview } from '../protocol/panel.ts';
import type { Draft, Masked } from '../protocol/record.ts';

/*
 * What the harness knows of secrets: that somebody looks through what it sends and shows. It never learns a value.
 */

/** A request to a model, as far as a value could be in it. */
export interface Sendable {
  system: string;
  messages: readonly { role: string; content: readonly { type: string }[] }[];
  tools: readonly unknown[];
}

/** What a tool gave back, as far as a secret could be in it. */
export interface Output {
  content: ContentBlock[];
  whole?: { media_type: string; bytes: Uint8Array };
}

/** Whose files, and where they are. */
export interface WorkPlace {
  session: SessionId;
  environment: Environment;
  workspaceFolder: string;
}

export interface SecretGuard {
  /** The request as it may be sent, the same if nothing was taken out, and the alarms to be stored. */
  request<T extends Sendable>(request: T): { request: T; alarms: Draft[] };
  /** Passes previews on without values, also where a value comes in pieces. */
  previews(send: (preview: Preview) => void): (preview: Preview) => void;
  /** A tool's output with what looks like a secret masked, unless its finding is `revealed`. */
  mask(session: SessionId, output: Output, revealed: readonly string[]): Output & { masked: Masked[] };
  /** Why a call with this input must not run: it would write a mask where the secret is. Undefined if it may. */
  inputProblem(tool: string, input: Record<string, unknown>): string | undefined;
  /** True if there is a placeholder in what a file tool is to write. */
  writesPlaceholder(tool: string, input: Record<string, unknown>): boolean;
  /** True if there is a placeholder in what is to leave the sandbox's reach. */
  holdsPlaceholder(input: Record<string, unknown>): boolean;
  /** The first of these files, paths inside the work folder, in which there is a placeholder; null if in none. */
  fileWithPlaceholder(place: WorkPlace, paths: readonly string[]): Promise<string | null>;
}
