import type { Disposable } from '../protocol/disposable.ts';
import { Disposables, disposable, Emitter } from '../protocol/disposable.ts';
import type { SessionId } from '../protocol/ids.ts';
import type { LogRecord } from '../protocol/record.ts';
import { LiveSession } from './live-session.ts';
import type { Project } from './project.ts';
import type { Projects } from './projects.ts';

/** A change is told to views after so many ms of quiet, and after at most three times as many. */
const SETTLE_MS = 60;
/** How often the lease of a session that is being run is looked at: a holder that dies writes nothing. */
const LEASE_CHECK_MS = 3000;
/** By then, in ms, the watch of a folder is at work. */
const WATCH_STARTS_MS = 500;
/** Logs read at the same time when a folder is opened. */
const READERS = 4;

/** All sessions of the window, live. What every view shows is read from here. */
export class Sessions implements Disposable {
  readonly #projects: Projects;
  readonly #sessions = new Map<SessionId, LiveSession>();
  readonly #watching = new Map<Project, Disposable>();
  readonly #scans = new Map<Project, Promise<void>>();
  readonly #changed = new Emitter<void>();
  readonly #records = new Emitter<{ session: LiveSession; records: readonly LogRecord[] }>();
  readonly #owned = new Disposables();
  readonly #failed: (error: unknown) => void;
  #settling: { timer: NodeJS.Timeout; since: number } | undefined;
  /** Something about some session is different. Debounced. */
  readonly onChange = this.#changed.on;
  /** Records have come, of one session, not debounced. */
  readonly onRecords = this.#records.on;
  /** All sessions that were there at the start have been read. */
  readonly ready: Promise<void>;

  constructor(projects: Projects, failed: (error: unknown) => void) {
    this.#projects = projects;
    this.#failed = failed;
    this.ready = Promise.all(projects.all().map((project) => this.#watch(project))).then(() => undefined);
    this.#owned.add(
      projects.onChange(({ added, removed }) => {
        for (const project of removed) this.#forget(project);
        for (const project of added) void this.#watch(project);
        this.changed();
      }),
    );
    const timer = setInterval(() => void this.#checkLeases(), LEASE_CHECK_MS);
    this.#owned.add(disposable(() => clearInterval(timer)));
  }

  /** Newest first. Broken ones, whose age nobody knows, come last. */
  all(): LiveSession[] {
    const created = (session: LiveSession) => session.state?.createdAt ?? '';
    return [...this.#sessions.values()].sort((a, b) => created(b).localeCompare(created(a)));
  }

  get(id: SessionId): LiveSession | undefined {
    return this.#sessions.get(id);
  }

  /** The session, waiting for the disk to be read if it is not known yet. */
  async find(id: SessionId): Promise<LiveSession | undefined> {
    await this.ready;
    if (!this.#sessions.has(id)) await Promise.all(this.#projects.all().map((project) => this.#scan(project)));
    return this.#sessions.get(id);
  }

  /** Sessions that can still go on: not archived, readable. */
  active(): LiveSession[] {
    return this.all().filter((session) => session.state && !session.state.archived && !session.broken);
  }

  /** Tells the views that something has changed, soon. */
  changed(): void {
    const now = Date.now();
    const since = this.#settling?.since ?? now;
    if (this.#settling) {
      if (now - since > SETTLE_MS * 3) return;
      clearTimeout(this.#settling.timer);
    }
    const timer = setTimeout(() => {
      this.#settling = undefined;
      this.#changed.fire();
    }, SETTLE_MS);
    this.#settling = { timer, since };
  }

  /** A watch takes a moment until it knows what was there; what came in between is found by a second look. */
  async #watch(project: Project): Promise<void> {
    const watch = project.store.watch(() => void this.#scan(project));
    const again = setTimeout(() => void this.#scan(project), WATCH_STARTS_MS);
    this.#watching.set(
      project,
      disposable(() => {
        clearTimeout(again);
        watch.dispose();
      }),
    );
    await this.#scan(project);
  }

  /** Reads the sessions that are new on disk and lets go of those that are gone. One scan of a project at a time. */
  #scan(project: Project): Promise<void> {
    const before = this.#scans.get(project) ?? Promise.resolve();
    const scan = before.then(() => this.#read(project)).catch((error: unknown) => this.#failed(error));
    this.#scans.set(project, scan);
    return scan;
  }

  async #read(project: Project): Promise<void> {
    const ids = await project.store.list();
    const there = new Set(ids);
    for (const session of this.#sessions.values()) {
      if (session.project === project && !there.has(session.id)) this.#drop(session);
    }
    const unread = ids.filter((id) => !this.#sessions.has(id));
    const next = async (): Promise<void> => {
      for (let id = unread.shift(); id !== undefined; id = unread.shift()) await this.#openSession(id, project);
    };
    await Promise.all(Array.from({ length: READERS }, next));
    this.changed();
  }

  async #openSession(id: SessionId, project: Project): Promise<void> {
    const session = new LiveSession(id, project, (of, records) => this.#came(of, records));
    await session.open();
    if (!this.#watching.has(project)) return session.dispose();
    this.#sessions.set(id, session);
    this.changed();
  }

  #came(session: LiveSession, records: readonly LogRecord[]): void {
    this.#records.fire({ session, records });
    this.changed();
    if (
      records.some((record) => record.event.type === 'drover.woke' || record.event.type.startsWith('session.status'))
    ) {
      void this.refreshHolder(session);
    }
  }

  async refreshHolder(session: LiveSession): Promise<void> {
    try {
      if (await session.refreshHolder()) this.changed();
    } catch (error) {
      this.#failed(error);
    }
  }

  async #checkLeases(): Promise<void> {
    for (const session of this.#sessions.values()) {
      if (!session.awake && (session.holder !== null || session.running)) await this.refreshHolder(session);
    }
  }

  #drop(session: LiveSession): void {
    this.#sessions.delete(session.id);
    session.dispose();
    this.changed();
  }

  #forget(project: Project): void {
    this.#watching.get(project)?.dispose();
    this.#watching.delete(project);
    this.#scans.delete(project);
    for (const session of this.#sessions.values()) if (session.project === project) this.#drop(session);
  }

  dispose(): void {
    clearTimeout(this.#settling?.timer);
    this.#owned.dispose();
    for (const watch of this.#watching.values()) watch.dispose();
    for (const session of this.#sessions.values()) session.dispose();
    this.#watching.clear();
    this.#sessions.clear();
    this.#settling = undefined;
  }
}
