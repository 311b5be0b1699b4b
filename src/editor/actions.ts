import { setTimeout as sleep } from 'node:timers/promises';
import * as vscode from 'vscode';
import { LeaseHeld } from '../log/log.ts';
import type { ContentBlock } from '../protocol/content.ts';
import type { ThreadId } from '../protocol/ids.ts';
import { type Actor, type Draft, draft } from '../protocol/record.ts';
import { folded } from '../session/snapshot.ts';
import type { SessionState } from '../session/state.ts';
import type { LiveSession } from './live-session.ts';
import { needTrust, Refusal } from './refusal.ts';
import type { Sessions } from './sessions.ts';

export type Via = Extract<Actor, { type: 'person' }>['via'];
export const person = (via: Via): Actor => ({ type: 'person', via });

/** What a person does to a session: it is appended to the log, and the harness is woken. Nothing else reaches the harness. */
export class Actions {
  readonly #sessions: Sessions;
  readonly #failed: (error: unknown) => void;
  readonly #turns = new WeakMap<LiveSession, Promise<unknown>>();
  readonly #working = new WeakMap<LiveSession, Promise<void>>();

  constructor(sessions: Sessions, failed: (error: unknown) => void) {
    this.#sessions = sessions;
    this.#failed = failed;
  }

  /** Says something to the session; it waits in the queue until the agent gets to it. Throws what `write` throws. */
  async send(session: LiveSession, content: ContentBlock[], via: Via): Promise<void> {
    const blocks = content.filter(
      (block) => block.type === 'text' || block.type === 'image' || block.type === 'document',
    );
    if (blocks.length === 0) throw new Refusal('There is nothing in the message, so it was not sent.');
    await this.write(session, 'a message was sent', (state) => [
      draft(
        'user.message',
        { content: blocks },
        { thread: state.primary, queued: true, local: { actor: person(via) } },
      ),
    ]);
    this.goOn(session, 'a message was sent');
  }

  /** Stops one thread, or all of them, as soon as what runs allows it. Throws what `write` throws. */
  async interrupt(session: LiveSession, via: Via, thread?: ThreadId): Promise<void> {
    await this.write(session, 'it was interrupted', (state) => [
      draft('user.interrupt', thread ? { session_thread_id: thread } : {}, {
        thread: thread ?? state.primary,
        queued: true,
        local: { actor: person(via) },
      }),
    ]);
    this.goOn(session, 'it was interrupted');
  }

  /** Puts a session away, or back. Its sandboxes go; its log stays. Throws what `write` throws. */
  async archive(session: LiveSession, archived: boolean, via: Via): Promise<void> {
    const why = archived ? 'it was archived' : 'it was restored from the archive';
    await this.write(session, why, () => [
      draft('drover.session_archived', { archived }, { local: { actor: person(via) } }),
    ]);
    if (archived) await this.removeSandboxes(session, why);
  }

  /** Its next call gets a fresh one. Throws `Refusal` where this window may not write. */
  async removeSandboxes(session: LiveSession, why: string): Promise<void> {
    try {
      const writer = await session.project.store.acquire(session.id, why);
      if (session.state?.sandbox) {
        const { sandboxes } = await session.project.engine();
        const record = async (drafts: Draft[]) => void (await writer.append(drafts));
        await sandboxes.remove({ session: session.id, record }, why);
      }
      if (!session.awake) await writer.release();
    } catch (error) {
      if (error instanceof LeaseHeld) throw held(session, error);
      throw error;
    } finally {
      await this.#sessions.refreshHolder(session);
    }
  }

  /** Makes this window the one that runs the session, whoever does now. */
  async takeOver(session: LiveSession): Promise<void> {
    needTrust();
    await session.project.store.takeOver(session.id, 'a person took it over in this window');
    await this.#sessions.refreshHolder(session);
    this.goOn(session, 'it was taken over');
  }

  /**
   * Appends what `drafts` makes of the session as it is on disk at that moment, durable when this resolves.
   * One write of a session at a time. Throws `Refusal` where this window may not write, or what `drafts` throws.
   */
  async write(session: LiveSession, why: string, drafts: (state: SessionState) => Draft[]): Promise<void> {
    const before = this.#turns.get(session) ?? Promise.resolve();
    const turn = before.then(
      () => this.#write(session, why, drafts),
      () => this.#write(session, why, drafts),
    );
    this.#turns.set(session, turn);
    await turn;
  }

  async #write(session: LiveSession, why: string, drafts: (state: SessionState) => Draft[]): Promise<void> {
    needTrust();
    const access = session.access(vscode.workspace.isTrusted);
    if (access.mode === 'read_only') throw new Refusal(access.why);
    try {
      const writer = await session.project.store.acquire(session.id, why);
      await writer.append(drafts(await folded((version, into) => writer.scan(version, into))));
    } catch (error) {
      if (error instanceof LeaseHeld) throw held(session, error);
      throw error;
    } finally {
      await this.#sessions.refreshHolder(session);
    }
  }

  /** Wakes the harness and does not wait for it: what it does, the log shows. */
  goOn(session: LiveSession, why: string): void {
    const work = async () => {
      const engine = await session.project.engine();
      const rest = engine.harness.wake(session.id, why);
      this.#sessions.changed();
      await rest;
    };
    const working = work()
      .catch((error: unknown) => this.#failed(error instanceof LeaseHeld ? held(session, error) : error))
      .then(() => this.#sessions.refreshHolder(session))
      .then(() => this.#sessions.changed());
    this.#working.set(session, working);
  }

  /** Resolves when what was set going here has come to rest, or after `ms`. */
  async rest(session: LiveSession, ms: number): Promise<void> {
    const enough = new AbortController();
    const waited = sleep(ms, undefined, { signal: enough.signal }).catch(() => undefined);
    await Promise.race([this.#working.get(session), waited]);
    enough.abort();
  }
}

const held = (session: LiveSession, error: LeaseHeld): Refusal =>
  new Refusal(error.message, [{ title: 'Take Over', command: 'drover.takeOver', args: [session.id] }]);
