import * as vscode from 'vscode';
import type { EventId } from '../protocol/ids.ts';
import { standingRule } from './approvals.ts';
import { summary } from './describe.ts';
import type { LiveSession } from './live-session.ts';
import type { Project } from './project.ts';
import { Refusal } from './refusal.ts';

/** Longest name of a rule, in characters: enough to tell two commands apart in a list. */
const NAME_MAX = 200;

/**
 * Makes a rule of what a call asks for, after saying what exactly it covers. False if the person changed their mind.
 * The call itself is answered by the caller.
 */
export async function alwaysAllow(session: LiveSession, id: EventId): Promise<boolean> {
  const call = session.state?.calls.get(id);
  if (!call) throw new Refusal('This call is no longer in the session’s log, so no rule was made.');
  if (session.state?.environment.config.type === 'host')
    throw new Refusal('This session has no sandbox: each call asks, so no rule was made. Allow this one alone.');
  const rule = standingRule(call);
  const covers = rule.input_sha256 ? `exactly this: ${summary(call)}` : `every “${call.name}” call, whatever its input`;
  const go = 'Always Allow';
  const detail = `New sessions in ${session.project.name} will run ${covers}, without asking. “Drover: Rules of This Folder” takes it back.`;
  if (
    (await vscode.window.showWarningMessage('Always allow this in this folder?', { modal: true, detail }, go)) !== go
  ) {
    return false;
  }
  const name = rule.input_sha256 ? summary(call).slice(0, NAME_MAX) : `every ${call.name} call`;
  await (await session.project.catalog()).createRule({ ...rule, name });
  return true;
}

/** Lists the folder's rules; the picked one is taken back, after asking. */
export async function manageRules(project: Project): Promise<void> {
  const catalog = await project.catalog();
  const rules = catalog.rules();
  if (rules.length === 0) {
    throw new Refusal(
      `${project.name} has no rules. A call that waits in the Sessions view can be made one: “Always Allow in This Folder”.`,
    );
  }
  const picked = await vscode.window.showQuickPick(
    rules.map((rule) => ({
      label: rule.name,
      description: rule.tool,
      detail: `${rule.input_sha256 ? 'exactly this call' : 'whatever its input'}, since ${new Date(rule.created_at).toLocaleString()}`,
      rule,
    })),
    { title: `Drover: what ${project.name} always allows. Pick one to take it back.` },
  );
  if (!picked) return;
  const go = 'Take It Back';
  const detail = 'New sessions ask again. Sessions that have already started keep what they started with.';
  const message = `Stop allowing “${picked.rule.name}” without asking?`;
  if ((await vscode.window.showWarningMessage(message, { modal: true, detail }, go)) === go) {
    await catalog.archiveRule(picked.rule.id);
  }
}
