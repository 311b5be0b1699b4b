import * as vscode from 'vscode';
import type { SessionId } from '../protocol/ids.ts';

const KEY = 'drover.openPanels';

interface Remembered {
  /** VS Code's id of one load of the window: a host that was restarted in it finds its predecessor's. */
  window: string;
  panels: { session: SessionId; label: string }[];
}

/**
 * Which panels this host had, for the host that comes after it if it is killed: the tabs it leaves on the screen carry
 * nothing but their label. Only a help in finding them: what a panel shows comes from the log.
 */
export class PanelMemory {
  readonly #state: vscode.Memento;

  constructor(state: vscode.Memento) {
    this.#state = state;
  }

  /** What a host that died in this very window had open. Empty after a reload: VS Code itself restores tabs then. */
  left(): Remembered['panels'] {
    const remembered = this.#state.get<Remembered>(KEY);
    return remembered?.window === vscode.env.sessionId ? remembered.panels : [];
  }

  async keep(panels: Remembered['panels']): Promise<void> {
    const remembered: Remembered = { window: vscode.env.sessionId, panels };
    if (JSON.stringify(this.#state.get<Remembered>(KEY)) === JSON.stringify(remembered)) return;
    await this.#state.update(KEY, remembered);
  }
}
