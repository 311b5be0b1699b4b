import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { Actions } from '../../src/editor/actions.ts';
import type { LiveSession } from '../../src/editor/live-session.ts';
import { Projects } from '../../src/editor/projects.ts';
import { Rehearsal } from '../../src/editor/rehearsal.ts';
import { Sessions } from '../../src/editor/sessions.ts';
import { createEngine } from '../../src/engine.ts';
import { openCatalog } from '../../src/log/catalog.ts';
import { openStore } from '../../src/log/store.ts';
import { text } from '../../src/protocol/content.ts';
import type { Environment } from '../../src/protocol/environment.ts';
import { type EventId, mint, type SessionId, type ThreadId } from '../../src/protocol/ids.ts';
import { type Draft, draft } from '../../src/protocol/record.ts';
import { noUsage } from '../../src/protocol/usage.ts';
import { REHEARSAL_MODEL } from '../../src/rehearsal/models.ts';
import { CheckpointStore } from '../../src/sandbox/checkpoints/checkpoints.ts';
import { makeFolder } from '../support/temp.ts';

export interface Call {
  name: string;
  input: Record<string, unknown>;
}

/** A temporary folder with real sessions in it, and the editor's own parts over them. `await using` clears it. */
export class Stage {
  readonly folder: string;
  readonly projects: Projects;
  readonly sessions: Sessions;
  readonly actions: Actions;
  readonly failures: unknown[] = [];
  readonly #rehearsal = new Rehearsal();

  private constructor(folder: string) {
    this.folder = folder;
    this.projects = new Projects(
      {
        openStore: (root) => openStore({ root }),
        openCatalog,
        openCheckpoints: async (root) => new CheckpointStore({ root, privateFolder: join(folder, 'private') }),
        openEngine: async (project) =>
          createEngine({
            checkpoints: await project.checkpoints(),
            store: project.store,
            workspaceFolder: project.path,
            apiKey: async () => undefined,
            baseUrl: () => '',
            dockerHost: '',
            rehearsalUrl: () => this.#rehearsal.url(),
            devcontainerCli: vscode.Uri.joinPath(vscode.Uri.file(folder), 'none').fsPath,
            cacheFolder: vscode.Uri.joinPath(vscode.Uri.file(folder), 'cache').fsPath,
            onProgress: () => undefined,
          }),
      },
      [{ uri: vscode.Uri.file(folder), name: 'stage' }],
    );
    const failed = (error: unknown) => void this.failures.push(error);
    this.sessions = new Sessions(this.projects, failed);
    this.actions = new Actions(this.sessions, failed);
  }

  static async open(): Promise<Stage> {
    return new Stage(await makeFolder('drover-stage-'));
  }

  get project() {
    const [project] = this.projects.all();
    if (!project) throw new Error('The stage has a project.');
    return project;
  }

  /** A session whose agent has asked to make these calls; nobody holds it. */
  async asking(...calls: Call[]): Promise<{ session: LiveSession; calls: EventId[] }> {
    const id = mint.session();
    const ids = calls.map(() => mint.event());
    const writer = await this.project.store.create(id, asking(id, calls, ids));
    await writer.release();
    return { session: await this.find(id), calls: ids };
  }

  /** The same, of a session that works on a copy of its own. */
  async isolated(...calls: Call[]): Promise<LiveSession> {
    return await this.in({ workspace: 'isolated' }, ...calls);
  }

  /** The same, of a session whose environment differs in this. */
  async in(differently: Partial<Environment>, ...calls: Call[]): Promise<LiveSession> {
    const id = mint.session();
    const [created, ...rest] = asking(
      id,
      calls,
      calls.map(() => mint.event()),
    );
    if (created?.event.type !== 'drover.session_created' || !('environment' in created.event))
      throw new Error('No start.');
    const environment = { ...created.event.environment, ...differently };
    const writer = await this.project.store.create(id, [
      { ...created, event: { ...created.event, environment } },
      ...rest,
    ]);
    await writer.release();
    return await this.find(id);
  }

  async find(id: SessionId): Promise<LiveSession> {
    const session = await this.sessions.find(id);
    if (!session) throw new Error(`The session ${id} is not found.`);
    return session;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.sessions.dispose();
    await this.projects.close();
    await this.#rehearsal.close();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The log of a turn that stands at its calls. */
function asking(session: SessionId, calls: readonly Call[], ids: readonly EventId[]): Draft[] {
  const thread: ThreadId = mint.thread();
  const agent = { name: 'Actor', model: REHEARSAL_MODEL, tools: [{ type: 'agent_toolset_20260401' as const }] };
  const now = new Date().toISOString();
  const environment = {
    id: mint.environment(),
    type: 'environment' as const,
    name: 'Nowhere',
    config: { type: 'os' as const },
    created_at: now,
    updated_at: now,
    archived_at: null,
  };
  const span = mint.event();
  const uses = calls.map(({ name, input }, index) =>
    draft(
      'agent.tool_use',
      { name, input, evaluated_permission: 'ask', evaluation: { type: 'always_ask' } },
      {
        thread,
        id: ids[index] ?? mint.event(),
        local: { reply: { span, index }, model_tool_use_id: `toolu_${index}`, why: 'the agent always asks' },
      },
    ),
  );
  const stop_reason = { type: 'requires_action' as const, event_ids: [...ids] };
  return [
    draft('drover.session_created', {
      session_id: session,
      primary_thread_id: thread,
      title: 'A session that asks',
      agent,
      environment,
      vault_ids: [],
      strategy: 'everything',
    }),
    draft('user.message', { content: [text('[rehearsal:say] Do it.')] }, { thread }),
    draft('session.status_running', {}),
    draft('session.thread_status_running', { session_thread_id: thread, agent_name: 'Actor' }, { thread }),
    draft('span.model_request_start', {}, { thread, id: span, local: { model: REHEARSAL_MODEL } }),
    ...uses,
    draft(
      'span.model_request_end',
      { model_request_start_id: span, is_error: false, model_usage: noUsage() },
      { thread, local: { stop_reason: 'tool_use', cost_usd: 0.004 } },
    ),
    draft(
      'session.thread_status_idle',
      { session_thread_id: thread, agent_name: 'Actor', stop_reason, stop_details: null },
      { thread },
    ),
    draft('session.status_idle', { stop_reason, stop_details: null }),
  ];
}
