import * as vscode from 'vscode';
import type { EventId, SessionId } from '../protocol/ids.ts';
import { askingOf } from '../session/fold.ts';
import type { App } from './app.ts';
import { cleanUp } from './clean-up.ts';
import type { CommandId } from './command-ids.ts';
import { deleteSession } from './delete-session.ts';
import { age, asker, standing, standingText, summary } from './describe.ts';
import type { LiveSession } from './live-session.ts';
import { mcpHandlers } from './mcp-commands.ts';
import { pickModel } from './pick-model.ts';
import { rebuildSandbox } from './rebuild.ts';
import { needTrust, Refusal } from './refusal.ts';
import { rehearse } from './rehearse.ts';
import { alwaysAllow, manageRules } from './rules.ts';
import { openSample } from './sample.ts';
import { chooseAndApply, dropCopy, mayDropCopy, reviewChanges } from './session-changes.ts';
import { settings } from './settings.ts';
import { askForSession, createSession } from './start-session.ts';
import { createDevcontainer } from './starter-devcontainer.ts';
import { chooseVaults, vaultHandlers } from './vault-commands.ts';
import { type Waiting, waitingCalls } from './waiting.ts';

/** How long, in ms, an interrupt may take before the session is archived all the same. */
const INTERRUPT_MS = 10_000;

type Handler = (app: App, args: readonly unknown[]) => Promise<void>;

/** What each command does. A handler throws what a person should read. */
export const handlers: Record<CommandId, Handler> = {
  ...vaultHandlers,
  ...mcpHandlers,

  async startSession(app) {
    const project = await app.projects.choose();
    if (!project) return;
    needTrust();
    const vaults = await app.secrets.vaults(project.store.root);
    const wanted = await askForSession(project, () => chooseVaults(vaults));
    if (wanted) await app.begin(project, await createSession(project, wanted));
  },

  async openSession(app, args) {
    const session =
      sessionIn(app, args) ?? (await pickSession(app, 'Drover: which session?', () => app.sessions.all()));
    if (!session) return;
    const call = callIn(args);
    if (call) app.showCall(session, call);
    else app.panels.open(session);
  },

  async searchSessions(app) {
    await app.searchSessions();
  },

  async interrupt(app, args) {
    const running = () => app.sessions.active().filter((session) => session.running);
    const session =
      sessionIn(app, args) ??
      app.panels.active() ??
      (await pickSession(app, 'Drover: interrupt which session?', running));
    if (!session) return;
    if (!session.running) throw new Refusal('This session is not running, so there is nothing to interrupt.');
    await app.actions.interrupt(session, args.length > 0 ? 'sidebar' : 'command');
  },

  async continueSession(app, args) {
    needTrust();
    const idle = () => app.sessions.active().filter((session) => !session.awake);
    const session = sessionIn(app, args) ?? (await pickSession(app, 'Drover: which session should go on?', idle));
    if (session) await app.continueSession(session);
  },

  async approveNext(app) {
    const { session, call } = await oldest(app);
    if (!app.seen(session)) return showFirst(app, { session, call }, 'allow');
    await app.answer(session, { call: call.id, result: 'allow', via: 'command', seen: session.state?.head.seq ?? -1 });
  },

  async denyNext(app) {
    const { session, call } = await oldest(app);
    await deny(app, session, call.id, 'command');
  },

  async focusApproval(app) {
    const { session } = await oldest(app);
    app.panels.open(session).focusApproval();
  },

  async approve(app, args) {
    const { session, call } = needCall(app, args);
    await app.answer(session, { call, result: 'allow', via: 'sidebar', seen: session.state?.head.seq ?? -1 });
  },

  async deny(app, args) {
    const { session, call } = needCall(app, args);
    await deny(app, session, call, 'sidebar');
  },

  async alwaysAllow(app, args) {
    const { session, call } = needCall(app, args);
    const seen = session.state?.head.seq ?? -1;
    const question = session.state?.questions.find((one) => one.id === call);
    if (question?.kind === 'canary')
      throw new Refusal('A tripwire is looked at each time, so it can’t be always allowed.');
    if (question) return app.answer(session, { call, result: 'allow', scope: 'always', via: 'sidebar', seen });
    if (await alwaysAllow(session, call)) {
      await app.answer(session, { call, result: 'allow', standing: true, via: 'sidebar', seen });
    }
  },

  async manageRules(app) {
    const project = await app.projects.choose();
    if (project) await manageRules(project);
  },

  async newEnvironment(app) {
    const project = await app.projects.choose();
    if (project) (await app.environments()).create(project);
  },

  async editEnvironment(app) {
    const project = await app.projects.choose();
    if (project) await (await app.environments()).edit(project);
  },

  async manageEnvironments(app) {
    const project = await app.projects.choose();
    if (project) await (await app.environments()).manage(project);
  },

  async showDiff(app, args) {
    const { session, call } = needCall(app, args);
    await app.showDiff(session, call);
  },

  async reviewChanges(app, args) {
    const session = await withCopy(app, args, 'Drover: review the changes of which session?');
    if (session) await reviewChanges(session);
  },

  async applyChanges(app, args) {
    const session = await withCopy(app, args, 'Drover: apply the changes of which session?');
    if (session) await chooseAndApply(app.actions, session);
  },

  async restoreFiles(app, args) {
    const session = await sessionFor(app, args, 'Drover: put back the files of which session?');
    if (session) await (await checkpointCommands()).restoreTo(app, session, callIn(args), 'command');
  },

  async forkSession(app, args) {
    const session = await sessionFor(app, args, 'Drover: fork which session?');
    if (session) await (await checkpointCommands()).forkFrom(app, session, callIn(args), 'command');
  },

  async changesByCall(app, args) {
    const session = await sessionFor(app, args, 'Drover: the changes in which session?');
    if (session) await (await checkpointCommands()).changesBy(session, 'call', callIn(args));
  },

  async changesByThread(app, args) {
    const session = await sessionFor(app, args, 'Drover: the changes in which session?');
    if (session) await (await checkpointCommands()).changesBy(session, 'thread', callIn(args));
  },

  async changesBySession(app, args) {
    const session = await sessionFor(app, args, 'Drover: the changes by which session?');
    if (session) await (await checkpointCommands()).changesBy(session, 'session');
  },

  async archiveSession(app, args) {
    const session =
      sessionIn(app, args) ?? (await pickSession(app, 'Drover: archive which session?', () => app.sessions.active()));
    if (!session) return;
    if (session.running || session.pending.length > 0) {
      const go = 'Interrupt and Archive';
      const detail = 'What it is doing stops, and calls that wait for you are not run. Its log is kept.';
      const message = `“${session.title}” has not finished.`;
      if ((await vscode.window.showWarningMessage(message, { modal: true, detail }, go)) !== go) return;
      await app.actions.interrupt(session, 'sidebar');
      await app.actions.rest(session, INTERRUPT_MS);
    }
    if (!(await mayDropCopy(app.actions, session, 'Archive'))) return;
    await app.actions.archive(session, true, 'sidebar');
    await dropCopy(session);
  },

  async unarchiveSession(app, args) {
    const session = sessionIn(app, args);
    if (session) await app.actions.archive(session, false, 'sidebar');
  },

  async takeOver(app, args) {
    const followed = () => app.sessions.active().filter((session) => session.holder && !session.holder.ours);
    const session = sessionIn(app, args) ?? (await pickSession(app, 'Drover: take over which session?', followed));
    if (session) await app.actions.takeOver(session);
  },

  async openLogFile(app, args) {
    const session = sessionIn(app, args) ?? app.panels.active();
    if (!session) return;
    const path = vscode.Uri.joinPath(session.project.uri, '.drover', 'sessions', session.id, 'log.jsonl');
    await vscode.commands.executeCommand('vscode.open', path);
  },

  async verifyLog(app, args) {
    const session =
      sessionIn(app, args) ??
      (await pickSession(app, 'Drover: verify the log of which session?', () => app.sessions.all()));
    if (session) await app.logChecks.show(session);
  },

  async deleteSession(app, args) {
    const session =
      sessionIn(app, args) ?? (await pickSession(app, 'Drover: delete which session?', () => app.sessions.all()));
    if (session) await deleteSession(app, session);
  },

  async exportSession(app, args) {
    const session =
      sessionIn(app, args) ??
      app.panels.active() ??
      (await pickSession(app, 'Drover: export which session?', () => app.sessions.all()));
    if (!session) return;
    const { exportSession } = await import('./export-session.ts');
    await exportSession(session);
  },

  async openExport(app, [file]) {
    const { openExportedSession } = await import('./open-export.ts');
    await openExportedSession(app.panels, file);
  },

  async setApiKey(app) {
    const done = await app.key.ask();
    if (done === 'removed') void vscode.window.showInformationMessage('Drover: the stored API key was removed.');
    if (done === 'stored') await app.keyStored();
  },

  async pickModel(app) {
    await pickModel(await app.modelClient(), settings().model);
  },

  async rehearse(app) {
    await rehearse(app);
  },

  async openSample(app) {
    await openSample(app.extension, app.storage);
  },

  async diagnose(app) {
    const { diagnose } = await import('./diagnose.ts');
    await diagnose(app);
  },

  async cleanUp(app) {
    await cleanUp(app);
  },

  async createDevcontainer(app, [image]) {
    await createDevcontainer(app, typeof image === 'string' ? image : undefined);
  },

  async rebuildSandbox(app, args) {
    const session =
      sessionIn(app, args) ??
      (await pickSession(app, 'Drover: rebuild the sandbox of which session?', () =>
        app.sessions.active().filter((one) => one.state?.sandbox),
      ));
    if (session) await rebuildSandbox(app.actions, session);
  },

  async showDiagnostics(app) {
    app.reporter.showLog();
  },
};

/** The session that a command is for, among those that work on copies of their own. */
async function withCopy(app: App, args: readonly unknown[], title: string): Promise<LiveSession | undefined> {
  const isolated = () => app.sessions.active().filter((one) => one.state?.environment.workspace === 'isolated');
  return sessionIn(app, args) ?? app.panels.active() ?? (await pickSession(app, title, isolated));
}

/** Loaded on need. */
const checkpointCommands = () => import('./checkpoints/commands.ts');

/** The session that is meant, or that the person is in, or that they choose. */
const sessionFor = async (app: App, args: readonly unknown[], title: string): Promise<LiveSession | undefined> =>
  sessionIn(app, args) ?? app.panels.active() ?? pickSession(app, title, () => app.sessions.all());

/** Nobody should allow what they have not looked at: a call that is on no screen is shown, and the command asked for again. */
async function showFirst(app: App, { session, call }: Waiting, what: string): Promise<void> {
  app.panels.open(session).focusApproval();
  const message = `Drover: this is the oldest question (${summary(call)}). Run the command again to ${what} it.`;
  vscode.window.setStatusBarMessage(message, 10_000);
}

/** Asks for a reason and denies; an empty reason is fine, Escape leaves the call waiting. */
async function deny(app: App, session: LiveSession, call: EventId, via: 'command' | 'sidebar'): Promise<void> {
  const { state } = session;
  const asked = state && askingOf(state, call);
  if (!state || !asked) throw new Refusal('This call is no longer in the session’s log, so nothing was answered.');
  const seen = state.head.seq;
  if (!state.calls.has(call)) return app.answer(session, { call, result: 'deny', via, seen });
  const reason = await vscode.window.showInputBox({
    title: `Drover: deny ${asker(state, asked)}`,
    prompt: summary(asked),
    placeHolder: 'Why not, and what to do instead (the agent reads this; may be empty)',
  });
  if (reason === undefined) return;
  const denyMessage = reason.trim();
  await app.answer(session, { call, result: 'deny', via, seen, ...(denyMessage ? { denyMessage } : {}) });
}

async function oldest(app: App): Promise<Waiting> {
  await app.sessions.ready;
  const next = waitingCalls(app.sessions)[0];
  if (!next) throw new Refusal('Nothing waits for you: no session has a call that asks.');
  return next;
}

/** Commands get a row of the tree, or the ids as text. */
function sessionIn(app: App, args: readonly unknown[]): LiveSession | undefined {
  const [first] = args;
  if (typeof first === 'string') return app.sessions.get(first as SessionId);
  if (typeof first !== 'object' || first === null || !('session' in first)) return undefined;
  const { session } = first;
  return app.sessions.all().find((one) => one === session);
}

function callIn(args: readonly unknown[]): EventId | undefined {
  const [first, second] = args;
  if (typeof second === 'string') return second as EventId;
  if (typeof first !== 'object' || first === null || !('call' in first)) return undefined;
  return typeof first.call === 'string' ? (first.call as EventId) : undefined;
}

function needCall(app: App, args: readonly unknown[]): { session: LiveSession; call: EventId } {
  const session = sessionIn(app, args);
  const call = callIn(args);
  if (!session || !call) throw new Refusal('This command answers one call; use it on a row of the Sessions view.');
  return { session, call };
}

/** Asks which of the sessions there are once all have been found: a command may be the first thing a window does. */
async function pickSession(app: App, title: string, among: () => LiveSession[]): Promise<LiveSession | undefined> {
  await app.sessions.ready;
  const from = among();
  if (from.length === 0) throw new Refusal('There is no session to do this with.');
  if (from.length === 1) return from[0];
  const picked = await vscode.window.showQuickPick(
    from.map((session) => ({
      label: session.title,
      description: session.state ? age(session.state.updatedAt, Date.now()) : '',
      detail: standingText[standing(session)],
      session,
    })),
    { title },
  );
  return picked?.session;
}
