import type { ContentBlock } from './content.ts';
import type { EventId, SessionId, ThreadId } from './ids.ts';
import type { BlobRef, LogRecord, Scope, Seq } from './record.ts';

/*
 * What the panel's webview and the extension host say to each other.
 * The host sends records by seq; the webview folds them with the same fold. Nothing is polled.
 */

/** A piece of a reply while it streams. Never stored; the record with the same event id is the truth. */
export type Preview =
  | { type: 'start'; thread: ThreadId; request: EventId; id: EventId; block: 'message' | 'thinking' }
  | { type: 'start'; thread: ThreadId; request: EventId; id: EventId; block: 'tool_use'; name: string }
  /** `text` is appended to the block: message text, or the partial JSON of a tool's input. */
  | { type: 'delta'; thread: ThreadId; id: EventId; text: string }
  /** Output of a running tool, appended. */
  | { type: 'output'; thread: ThreadId; id: EventId; text: string }
  /** The request is over, its previews are void. */
  | { type: 'end'; thread: ThreadId; request: EventId };

/** Why this window may not write: it follows another one, or the log is of a newer Drover. */
export type Access = { mode: 'write' } | { mode: 'follow'; holder: string } | { mode: 'read_only'; why: string };

export type HostMessage =
  /** The first message after `ready`, and again after a reconnect: forget what you had. */
  | { type: 'hello'; sessionId: SessionId; access: Access /** host clock, ms since 1970 */; now: number }
  /** `more`: further history follows at once; paint when it is false. */
  | { type: 'records'; records: LogRecord[]; more: boolean }
  | { type: 'preview'; preview: Preview }
  | { type: 'access'; access: Access; interrupted: boolean }
  /** Once a second while the panel is visible; three missed ones mean the host has died. */
  | { type: 'alive'; now: number }
  | { type: 'problem'; message: string }
  | { type: 'blob'; sha256: string; text: string | null; problem: string | null }
  /** Select this event and scroll to it. */
  | { type: 'reveal'; id: EventId }
  /** A command asks the panel to answer the oldest pending approval's card by focus. */
  | { type: 'focus_approval' }
  /** Answer to a request with this number. */
  | { type: 'reply'; to: number; problem: string | null };

export type CheckpointAct = 'restore' | 'fork' | 'changes_by_call' | 'changes_by_thread' | 'changes_by_session';

export type PanelMessage =
  | { type: 'ready' }
  | { type: 'send'; n: number; content: ContentBlock[] }
  | {
      type: 'confirm';
      n: number;
      tool_use_id: EventId;
      result: 'allow' | 'deny';
      deny_message?: string;
      /** Allow this from now on, in this session. */
      standing?: boolean;
      /** How far the yes to a question goes. */
      scope?: Scope;
      /** The seq the panel had folded when the person answered. */
      seen: Seq;
    }
  | { type: 'interrupt'; n: number; thread?: ThreadId }
  | { type: 'show_diff'; tool_use_id: EventId }
  /** About the files as they were at an event: `id` is a call, a message of a person or a checkpoint. */
  | { type: 'checkpoint'; n: number; act: CheckpointAct; id: EventId }
  /** Let the model see a value that was masked in a call's output. */
  | { type: 'reveal_secret'; n: number; tool_use_id: EventId; finding: string }
  | { type: 'open_file'; path: string }
  | { type: 'read_blob'; blob: BlobRef }
  | { type: 'copy'; text: string }
  | { type: 'run'; command: 'setApiKey' | 'rehearse' | 'takeOver' };
