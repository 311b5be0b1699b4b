import type { Access } from '../src/protocol/panel.ts';
import { pendingApprovals } from '../src/session/fold.ts';
import type { SandboxState, SessionState, ThreadState } from '../src/session/state.ts';
import { count, duration } from './format.ts';
import type { Tone } from './tool-look.ts';

export interface Words {
  text: string;
  icon: string;
  tone: Tone;
  /** More, for the tooltip. */
  more?: string;
}

const IDLE: Readonly<Record<string, Words>> = {
  end_turn: {
    text: 'Done',
    icon: 'check',
    tone: 'ok',
    more: 'The agent has finished its turn and waits for a message.',
  },
  retries_exhausted: {
    text: 'Stopped: the model could not be asked',
    icon: 'error',
    tone: 'bad',
    more: 'Send a message to try again.',
  },
  budget_reached: { text: 'Stopped: the budget is used up', icon: 'credit-card', tone: 'warn' },
  refusal: { text: 'Stopped: the model refused', icon: 'circle-slash', tone: 'warn' },
};

/** What the session does, or why it does nothing. What needs the person comes first. */
export function sessionWords(session: SessionState, access: Access, interrupted: boolean): Words {
  const waiting = pendingApprovals(session).length;
  if (access.mode === 'read_only') {
    const text = interrupted ? 'Read-only: at work until its last event' : 'Read-only';
    return { text, icon: 'lock', tone: 'quiet', more: access.why };
  }
  if (access.mode === 'follow') {
    const doing = waiting > 0 ? `${count(waiting, 'approval')} pending there` : threadDoing(session);
    return { text: `Follows another window: ${doing}`, icon: 'eye', tone: 'quiet', more: access.holder };
  }
  if (session.archived) return { text: 'Archived', icon: 'archive', tone: 'quiet' };
  if (session.status === 'terminated') return { text: 'Ended', icon: 'circle-slash', tone: 'quiet' };
  if (waiting > 0) return { text: `Waiting for you: ${count(waiting, 'approval')}`, icon: 'bell-dot', tone: 'warn' };
  if (interrupted) {
    return {
      text: 'Interrupted: its window is gone',
      icon: 'debug-disconnect',
      tone: 'warn',
      more: 'It goes on from its last event when it is woken.',
    };
  }
  if (session.status === 'running') return { text: 'Running', icon: 'loading', tone: 'busy' };
  if (session.status === 'rescheduling') {
    return { text: 'Trying again: the model did not answer', icon: 'history', tone: 'warn' };
  }
  return idleWords(session);
}

function idleWords(session: Pick<SessionState, 'stopReason'>): Words {
  const reason = session.stopReason?.type;
  return (reason && IDLE[reason]) || { text: 'Idle', icon: 'circle-outline', tone: 'quiet' };
}

const threadDoing = (session: SessionState): string =>
  session.status === 'running' ? 'running' : session.status === 'terminated' ? 'ended' : 'idle';

/** The same for one thread, in fewer words: it stands in a narrow tree. */
export function threadWords(session: SessionState, thread: ThreadState, interrupted: boolean): Words {
  const waiting = pendingApprovals(session).some((call) => call.thread === thread.id);
  if (waiting) return { text: 'waits for you', icon: 'bell-dot', tone: 'warn' };
  if (thread.status === 'terminated') return { text: 'ended', icon: 'pass', tone: 'ok' };
  if (thread.status === 'rescheduling') return { text: 'trying again', icon: 'history', tone: 'warn' };
  if (thread.status === 'running') {
    return interrupted
      ? { text: 'interrupted', icon: 'debug-disconnect', tone: 'warn' }
      : { text: 'running', icon: 'loading', tone: 'busy' };
  }
  const reason = thread.stopReason?.type;
  if (reason === 'end_turn') return { text: 'done', icon: 'pass', tone: 'ok' };
  if (reason === 'retries_exhausted') return { text: 'stopped', icon: 'error', tone: 'bad' };
  if (reason === 'budget_reached') return { text: 'budget used up', icon: 'credit-card', tone: 'warn' };
  if (reason === 'refusal') return { text: 'refused', icon: 'circle-slash', tone: 'warn' };
  return { text: 'idle', icon: 'circle-outline', tone: 'quiet' };
}

/** `container 3f2a…`, `OS sandbox`: where things run, once they do. */
export function sandboxName({ kind, detail }: Pick<SandboxState, 'kind' | 'detail'>): string {
  if (kind === 'host') return detail;
  const what = kind === 'os' ? 'OS sandbox' : 'container';
  return detail.startsWith(what) ? detail : `${what} ${detail}`.trim();
}

/** The state of the session's hands. @param name what a sandbox is called */
export function sandboxWords(session: SessionState, name: (sandbox: SandboxState) => string): Words {
  const environment = session.environment.name;
  if (session.environment.config.type === 'host') {
    return {
      text: `${environment}: no sandbox, on this machine`,
      icon: 'warning',
      tone: 'warn',
      more: 'Calls act on this machine itself, with all that you may do on it. Each one asks first.',
    };
  }
  const sandbox = session.sandbox ? session.sandboxes.get(session.sandbox) : [...session.sandboxes.values()].at(-1);
  if (!sandbox) {
    return {
      text: `${environment}: no sandbox needed yet`,
      icon: 'vm-outline',
      tone: 'quiet',
      more: 'One is made when the first call needs it.',
    };
  }
  const took = sandbox.durationMs === null ? undefined : `Ready in ${duration(sandbox.durationMs)}`;
  switch (sandbox.state) {
    case 'provisioning':
      return { text: `${environment}: provisioning…`, icon: 'loading', tone: 'busy' };
    case 'ready':
      return {
        text: `${environment}: ${name(sandbox)}`,
        icon: 'vm-active',
        tone: 'ok',
        ...(took ? { more: took } : {}),
      };
    case 'failed':
      return { text: `${environment}: no sandbox could be made`, icon: 'error', tone: 'bad', more: sandbox.detail };
    case 'lost':
      return {
        text: `${environment}: sandbox lost`,
        icon: 'debug-disconnect',
        tone: 'warn',
        more: 'The next call gets a fresh one.',
      };
    case 'removed':
      return { text: `${environment}: sandbox removed`, icon: 'vm-outline', tone: 'quiet' };
  }
}
