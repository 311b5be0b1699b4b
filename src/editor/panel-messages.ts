import * as vscode from 'vscode';
import type { HostMessage, PanelMessage } from '../protocol/panel.ts';
import type { BlobRef } from '../protocol/record.ts';
import type { Answer } from './approvals.ts';
import { hostPath } from './host-path.ts';
import type { LiveSession } from './live-session.ts';
import { Refusal } from './refusal.ts';
import { sentence } from './reporter.ts';

/** What a panel can ask for. Each throws what a person should read. */
export interface PanelActions {
  send(session: LiveSession, content: Extract<PanelMessage, { type: 'send' }>['content']): Promise<void>;
  answer(session: LiveSession, answer: Answer): Promise<void>;
  interrupt(session: LiveSession, thread: Extract<PanelMessage, { type: 'interrupt' }>['thread']): Promise<void>;
  showDiff(session: LiveSession, call: Extract<PanelMessage, { type: 'show_diff' }>['tool_use_id']): Promise<void>;
  checkpoint(session: LiveSession, wish: Extract<PanelMessage, { type: 'checkpoint' }>): Promise<void>;
  reveal(session: LiveSession, what: Extract<PanelMessage, { type: 'reveal_secret' }>): Promise<void>;
  run(session: LiveSession, command: Extract<PanelMessage, { type: 'run' }>['command']): Promise<void>;
}

type Request = Exclude<PanelMessage, { type: 'ready' }>;
type Reply = (message: HostMessage) => void;

/** Does what the page asks for and answers: a request with a number gets a reply, whatever happens. */
export async function handle(
  message: Request,
  session: LiveSession,
  actions: PanelActions,
  reply: Reply,
): Promise<void> {
  if (message.type === 'read_blob') return reply(await blob(session, message.blob));
  let problem: string | null = null;
  try {
    await act(message, session, actions);
  } catch (error) {
    problem = sentence(error);
  }
  if ('n' in message) reply({ type: 'reply', to: message.n, problem });
  else if (problem) reply({ type: 'problem', message: problem });
}

async function act(
  message: Exclude<Request, { type: 'read_blob' }>,
  session: LiveSession,
  actions: PanelActions,
): Promise<void> {
  switch (message.type) {
    case 'send':
      return actions.send(session, message.content);
    case 'confirm':
      return actions.answer(session, {
        call: message.tool_use_id,
        result: message.result,
        ...(message.deny_message ? { denyMessage: message.deny_message } : {}),
        standing: message.standing === true,
        ...(message.scope ? { scope: message.scope } : {}),
        via: 'panel',
        seen: message.seen,
      });
    case 'interrupt':
      return actions.interrupt(session, message.thread);
    case 'show_diff':
      return actions.showDiff(session, message.tool_use_id);
    case 'checkpoint':
      return actions.checkpoint(session, message);
    case 'reveal_secret':
      return actions.reveal(session, message);
    case 'open_file':
      return openFile(session, message.path);
    case 'copy':
      return vscode.env.clipboard.writeText(message.text);
    case 'run':
      return actions.run(session, message.command);
  }
}

async function openFile(session: LiveSession, path: string): Promise<void> {
  const file = hostPath(session.folder, path);
  if (!file) throw new Refusal(`${path} is not inside the workspace folder, so it can't be opened here.`);
  try {
    await vscode.commands.executeCommand('vscode.open', vscode.Uri.file(file));
  } catch {
    throw new Refusal(`${path} can't be opened: it may have been moved or removed since.`);
  }
}

/** Text shown of a blob, in bytes: the page shows no more, and the whole stays on disk. */
const BLOB_SHOWN = 2 * 1024 * 1024;

async function blob(session: LiveSession, wanted: BlobRef): Promise<HostMessage> {
  const answer = { type: 'blob', sha256: wanted.sha256 } as const;
  try {
    const bytes = await session.project.store.readBlob(session.id, wanted);
    if (bytes.subarray(0, 8192).includes(0)) {
      return { ...answer, text: null, problem: 'It is binary, so it is not shown as text.' };
    }
    const text = new TextDecoder().decode(bytes.subarray(0, BLOB_SHOWN));
    const cut = bytes.length > BLOB_SHOWN ? `\n… ${bytes.length - BLOB_SHOWN} more bytes are in ${wanted.path}` : '';
    return { ...answer, text: text + cut, problem: null };
  } catch (error) {
    return { ...answer, text: null, problem: sentence(error) };
  }
}
