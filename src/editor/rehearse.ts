import * as vscode from 'vscode';
import { modelId } from '../protocol/agent.ts';
import type { Environment } from '../protocol/environment.ts';
import { REHEARSAL_MODEL } from '../rehearsal/models.ts';
import type { App } from './app.ts';
import type { Project } from './project.ts';
import { needTrust, Refusal } from './refusal.ts';
import { isSample } from './sample.ts';
import { settings } from './settings.ts';
import { agentSnapshot, createSession, roster } from './start-session.ts';

/**
 * Plays a session with the built-in model: in the sample project it fixes the failing test; in any other folder it
 * only looks around, or the sample is opened first.
 */
export async function rehearse(app: App): Promise<void> {
  const sample = 'drover.openSample';
  if (app.projects.all().length === 0) return void (await vscode.commands.executeCommand(sample));
  const project = await app.projects.choose();
  if (!project) return;
  needTrust();
  if (await isSample(project.path)) {
    const { SAMPLE_TASK } = await import('../rehearsal/scenarios/fix-the-sample.ts');
    return play(app, project, SAMPLE_TASK, 'Rehearsal: fix the failing test');
  }
  const there = 'Open the sample project';
  const here = 'Look around here';
  const picked = await vscode.window.showQuickPick(
    [
      {
        label: there,
        detail: 'A copy in a window of its own. The whole piece: a failing test is found, fixed and reviewed.',
      },
      { label: here, detail: `Lists ${project.name}, reads its README, and changes nothing.` },
    ],
    { title: 'Drover: a rehearsal plays with a built-in model, no key needed' },
  );
  if (picked?.label === there) await vscode.commands.executeCommand(sample);
  if (picked?.label === here)
    await play(app, project, 'Look around in this folder and say what is here.', 'Rehearsal: look around');
}

async function play(app: App, project: Project, task: string, title: string): Promise<void> {
  const catalog = await project.catalog();
  const agents = catalog.agents();
  const agent = agents.find((one) => modelId(one) === REHEARSAL_MODEL && one.archived_at === null);
  if (!agent)
    throw new Refusal(
      `This folder's catalog has no agent with the model ${REHEARSAL_MODEL}, so nothing can be rehearsed.`,
    );
  const id = await createSession(project, {
    agent: agentSnapshot(agent, project),
    roster: roster(agent, agents, project),
    environment: await servedEnvironment(project, catalog.environments()),
    task,
    title,
  });
  await app.begin(project, id);
}

/** The environment that is set; else the first that something on this machine can serve; else the first, whose session says what is missing. */
async function servedEnvironment(project: Project, all: readonly Environment[]): Promise<Environment> {
  const there = all.filter((one) => one.archived_at === null);
  const wanted = settings(project.uri).defaultEnvironment;
  const preset = there.find((one) => one.name === wanted || one.id === wanted);
  if (preset) return preset;
  const { sandboxes } = await project.engine();
  for (const environment of there) {
    if ((await sandboxes.diagnose(environment)).ok) return environment;
  }
  const [first] = there;
  if (!first) throw new Refusal('This folder’s catalog has no environment, so there is nowhere to run.');
  return first;
}
