import { LitElement, type PropertyDeclarations } from 'lit';
import type { Disposable } from '../src/protocol/disposable.ts';
import type { Store } from './store.ts';

/**
 * A part of the panel. It draws into the page itself, not into a shadow tree: one set of linked style sheets serves all
 * parts, and labels may point from one part to another.
 */
export abstract class View extends LitElement {
  static override properties: PropertyDeclarations = { store: { attribute: false } };
  declare store: Store;
  #updates: Disposable | undefined;

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#updates = this.store.onUpdate(() => this.requestUpdate());
  }

  override disconnectedCallback(): void {
    this.#updates?.dispose();
    super.disconnectedCallback();
  }
}
