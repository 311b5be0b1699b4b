import * as vscode from 'vscode';
import { totalTokens } from '../protocol/usage.ts';
import { askingOf } from '../session/fold.ts';
import type { Asking } from '../session/state.ts';
import { age, asker, count, money, type Standing, standing, standingText, summary } from './describe.ts';
import { fileCall } from './file-call.ts';
import type { LiveSession } from './live-session.ts';
import type { Projects } from './projects.ts';
import type { Sessions } from './sessions.ts';
import type { Node } from './tree-nodes.ts';
import { mayAnswer } from './waiting.ts';

/** The Sessions tree: sessions with what waits in them, then the archive. */
export class SessionTree {
  readonly #sessions: Sessions;
  readonly #projects: Projects;

  constructor(sessions: Sessions, projects: Projects) {
    this.#sessions = sessions;
    this.#projects = projects;
  }

  async children(node?: Node): Promise<Node[]> {
    await this.#sessions.ready;
    if (node?.kind === 'session') {
      return node.session.pending.map((call) => ({ kind: 'approval', session: node.session, call: call.id }));
    }
    const archived = (session: LiveSession) => session.state?.archived === true;
    const rows = (sessions: LiveSession[]) => sessions.map((session): Node => ({ kind: 'session', session }));
    const all = this.#sessions.all();
    if (node?.kind === 'archive') return rows(all.filter(archived));
    const top = rows(all.filter((session) => !archived(session)));
    return all.some(archived) ? [...top, { kind: 'archive' }] : top;
  }

  parent(node: Node): Node | undefined {
    if (node.kind === 'approval') return { kind: 'session', session: node.session };
    return node.kind === 'session' && node.session.state?.archived ? { kind: 'archive' } : undefined;
  }

  item(node: Node): vscode.TreeItem {
    switch (node.kind) {
      case 'session':
        return node.session.state ? this.#session(node.session) : this.#broken(node.session);
      case 'approval':
        return this.#approval(node);
      case 'archive':
        return this.#archive();
    }
  }

  #session(session: LiveSession): vscode.TreeItem {
    const { state } = session;
    const pending = session.pending.length;
    const item = new vscode.TreeItem(session.title, vscode.TreeItemCollapsibleState.None);
    item.id = session.id;
    if (pending > 0) {
      item.collapsibleState = vscode.TreeItemCollapsibleState.Expanded;
      // VS Code keeps a row it knows as it was, closed; as another row it opens.
      item.id = `${session.id} asks`;
    }
    const where = standing(session);
    const parts = state ? [money(state.costUsd), age(state.updatedAt, Date.now())] : [];
    if (!plainToSee.has(where)) parts.unshift(standingText[where]);
    const from = state?.forkedFrom?.session;
    if (from) parts.push(`fork of ${this.#sessions.get(from)?.title ?? from}`);
    if (this.#projects.all().length > 1) parts.push(session.project.name);
    item.description = parts.join(' · ');
    item.iconPath = session.damage && where === 'done' ? damaged : icons[where];
    item.tooltip = tooltip(session, where);
    item.contextValue = context(session);
    item.command = { command: 'drover.openSession', title: 'Open Session', arguments: [node(session)] };
    item.accessibilityInformation = { label: `${session.title}, ${standingText[where]}, ${parts.join(', ')}` };
    return item;
  }

  #broken(session: LiveSession): vscode.TreeItem {
    const item = new vscode.TreeItem(session.id);
    item.id = session.id;
    item.description = 'can’t be read';
    item.iconPath = damaged;
    item.tooltip = session.broken ?? 'Its log is being read.';
    item.contextValue = 'broken';
    item.command = { command: 'drover.openSession', title: 'Open Session', arguments: [node(session)] };
    return item;
  }

  #approval(of: Extract<Node, { kind: 'approval' }>): vscode.TreeItem {
    const { state } = of.session;
    const call = state ? askingOf(state, of.call) : undefined;
    const item = new vscode.TreeItem(call ? summary(call) : 'no longer waits');
    item.id = `${of.session.id}/${of.call}`;
    item.iconPath = new vscode.ThemeIcon('question', new vscode.ThemeColor('notificationsWarningIcon.foreground'));
    if (!state || !call) return item;
    item.description = asker(state, call);
    item.tooltip = approvalTooltip(call, asker(state, call));
    item.contextValue = `${mayAnswer(of.session) ? 'approval' : 'question'}${fileCall(call) ? ':diff' : ''}`;
    item.command = { command: 'drover.openSession', title: 'Show', arguments: [of] };
    item.accessibilityInformation = { label: `${asker(state, call)} asks to run ${summary(call)}` };
    return item;
  }

  #archive(): vscode.TreeItem {
    const item = new vscode.TreeItem('Archived', vscode.TreeItemCollapsibleState.Collapsed);
    item.id = 'archive';
    item.iconPath = new vscode.ThemeIcon('archive');
    item.contextValue = 'archive';
    return item;
  }
}

const node = (session: LiveSession): Node => ({ kind: 'session', session });

const icon = (name: string, color?: string): vscode.ThemeIcon =>
  new vscode.ThemeIcon(name, color ? new vscode.ThemeColor(color) : undefined);

/** The icon says enough, and what waits is right below. */
const plainToSee: ReadonlySet<Standing> = new Set(['done', 'running', 'waiting']);

const damaged = icon('warning', 'list.warningForeground');
const icons: Record<Standing, vscode.ThemeIcon> = {
  waiting: icon('bell-dot', 'notificationsWarningIcon.foreground'),
  interrupted: icon('debug-disconnect', 'notificationsWarningIcon.foreground'),
  followed: icon('eye', 'charts.blue'),
  rescheduling: icon('watch', 'charts.yellow'),
  running: icon('loading~spin', 'charts.blue'),
  stopped: icon('error', 'list.errorForeground'),
  done: icon('pass', 'charts.green'),
  terminated: icon('circle-slash'),
  'read-only': icon('lock'),
};

/** What the menus of a row go by, see `view/item/context` in package.json. */
function context(session: LiveSession): string {
  if (session.state?.archived) return 'archived';
  const mode = session.access(vscode.workspace.isTrusted).mode;
  const parts = ['session', mode];
  if (session.interrupted) parts.push('interrupted');
  else if (session.running) parts.push('running');
  if (session.state?.environment.workspace === 'isolated') parts.push('isolated');
  return parts.join(':');
}

function tooltip(session: LiveSession, where: Standing): vscode.MarkdownString {
  const text = new vscode.MarkdownString();
  text.appendMarkdown('**').appendText(session.title).appendMarkdown('**\n\n');
  const { state } = session;
  if (!state) return text;
  const sandbox = state.sandbox ? state.sandboxes.get(state.sandbox) : undefined;
  const access = session.access(vscode.workspace.isTrusted);
  const rows: [string, string][] = [
    ['State', standingText[where]],
    ['Agent', state.agent.name],
    ['Environment', state.environment.name],
    ['Sandbox', sandbox ? `${sandbox.state}: ${sandbox.detail}` : 'none yet'],
    [
      'Tokens',
      `${count(totalTokens(state.usage))} in ${state.threads.size} thread${state.threads.size === 1 ? '' : 's'}`,
    ],
    ['Cost', `${money(state.costUsd)} at list price`],
    ['Started', new Date(state.createdAt).toLocaleString()],
  ];
  if (access.mode === 'follow') rows.push(['Run by', access.holder]);
  if (access.mode === 'read_only') rows.push(['Read-only', access.why]);
  if (session.damage) rows.push(['Damage', session.damage]);
  for (const [name, value] of rows) text.appendText(`${name}: ${value}`).appendMarkdown('  \n');
  return text;
}

function approvalTooltip(call: Asking, who: string): vscode.MarkdownString {
  const text = new vscode.MarkdownString();
  if (typeof call.input.question === 'string') return text.appendText(call.input.question);
  text.appendText(`${who} asks to run ${call.name}`).appendMarkdown('\n');
  const { command } = call.input;
  text.appendCodeblock(typeof command === 'string' ? command : JSON.stringify(call.input, null, 2).slice(0, 4000));
  if (call.why) text.appendText(`It asks because ${call.why}`);
  return text;
}
