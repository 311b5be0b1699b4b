import * as vscode from 'vscode';
import type { Hit } from '../log/search/hits.ts';
import { SearchIndex } from '../log/search/search.ts';
import { type Disposable, Disposables } from '../protocol/disposable.ts';
import type { EventId } from '../protocol/ids.ts';
import { age } from './describe.ts';
import type { LiveSession } from './live-session.ts';
import type { Project } from './project.ts';
import type { Sessions } from './sessions.ts';

/** Rows of the list at most; the newest are shown, and more typing leaves fewer. */
const ROWS = 100;
/** A search begins when nothing was typed for so many ms. */
const QUIET_MS = 80;

const TITLE = 'Drover: Search Sessions';

const kinds: Record<Hit['kind'], { words: string; icon: string }> = {
  title: { words: 'title', icon: 'tag' },
  user: { words: 'said to it', icon: 'account' },
  agent: { words: 'said by it', icon: 'comment' },
  thinking: { words: 'thinking', icon: 'lightbulb' },
  'tool input': { words: 'given to a tool', icon: 'tools' },
  'tool output': { words: 'output of a tool', icon: 'output' },
  answer: { words: 'answer', icon: 'pass' },
  error: { words: 'error', icon: 'error' },
  'between agents': { words: 'between agents', icon: 'arrow-swap' },
};

interface Row extends vscode.QuickPickItem {
  hit: Hit;
}

export interface SearchParts {
  projects: readonly Project[];
  sessions: Sessions;
  /** Shows an event in its session's panel. */
  show(session: LiveSession, event: EventId): void;
  failed(error: unknown): void;
}

/** An index lives as long as its project: the second search has nothing to read. */
const indexes = new WeakMap<Project, SearchIndex>();

function indexOf(project: Project): SearchIndex {
  const index = indexes.get(project) ?? new SearchIndex(project.store.root);
  indexes.set(project, index);
  return index;
}

/** The list that searches all sessions of the window as one types. */
export class SearchList implements Disposable {
  readonly pick = vscode.window.createQuickPick<Row>();
  readonly #parts: SearchParts;
  readonly #owned = new Disposables();
  readonly #indexes: SearchIndex[];
  #timer: NodeJS.Timeout | undefined;
  #running = new AbortController();
  #reading = true;

  constructor(parts: SearchParts) {
    this.#parts = parts;
    this.#indexes = parts.projects.map(indexOf);
    const { pick } = this;
    pick.title = TITLE;
    pick.placeholder =
      'Words, parts of words, or "a phrase": in messages, tool input and output, errors, subagents too';
    pick.matchOnDescription = true;
    pick.matchOnDetail = true;
    this.#owned.add(pick);
    this.#owned.add(pick.onDidChangeValue(() => this.#soon()));
    this.#owned.add(pick.onDidAccept(() => void this.#accept()));
    this.#owned.add(pick.onDidHide(() => this.dispose()));
  }

  /** Shows the list, and reads what is new in the logs meanwhile. */
  open(): void {
    this.pick.show();
    void this.#catchUp();
  }

  /** Looks for what is typed, and resolves when its rows are there. */
  async search(): Promise<void> {
    this.#running.abort();
    this.#running = new AbortController();
    const { signal } = this.#running;
    const { pick } = this;
    pick.busy = true;
    try {
      const found = await Promise.all(this.#indexes.map((index) => index.search(pick.value, { limit: ROWS, signal })));
      if (signal.aborted) return;
      const hits = found.flat().sort((a, b) => b.at - a.at);
      pick.items = hits.slice(0, ROWS).map((hit) => row(hit, Date.now()));
    } catch (error) {
      this.#parts.failed(error);
    } finally {
      if (!signal.aborted) pick.busy = this.#reading;
    }
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.#running.abort();
    this.#owned.dispose();
  }

  /** What was found so far is shown while the rest is read. */
  async #catchUp(): Promise<void> {
    const { pick } = this;
    pick.busy = true;
    try {
      const reads = this.#indexes.map((index) =>
        index.refresh((done, of) => {
          pick.title = done < of ? `${TITLE} (reading ${done + 1} of ${of} logs)` : TITLE;
        }),
      );
      await Promise.all(reads);
    } catch (error) {
      this.#parts.failed(error);
    }
    this.#reading = false;
    await this.search();
  }

  #soon(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#typed(), QUIET_MS);
  }

  /** Answers from what is known at once, and again if a log has got more. */
  async #typed(): Promise<void> {
    await this.search();
    if (this.#reading) return;
    const isNews = async (index: SearchIndex) => index.refresh().catch(() => false);
    const news = await Promise.all(this.#indexes.map(isNews));
    if (news.includes(true)) await this.search();
  }

  async #accept(): Promise<void> {
    const hit = this.pick.activeItems[0]?.hit;
    if (!hit) return;
    this.pick.hide();
    try {
      const session = await this.#parts.sessions.find(hit.session);
      if (session) this.#parts.show(session, hit.event);
    } catch (error) {
      this.#parts.failed(error);
    }
  }
}

function row(hit: Hit, now: number): Row {
  const { words, icon } = kinds[hit.kind];
  const where = [hit.agent, words, age(new Date(hit.at).toISOString(), now)].filter((part) => part !== '');
  return {
    label: asText(hit.title || hit.session),
    description: asText(where.join(' · ')),
    detail: asText(hit.preview),
    iconPath: new vscode.ThemeIcon(icon),
    // The list is what was found; VS Code would filter it a second time, by other rules.
    alwaysShow: true,
    hit,
  };
}

/** VS Code would draw an icon where a text has its name. */
const asText = (text: string): string => text.replace(/\$\([\w~-]+\)/g, '\\$&');
