import { html, nothing, type TemplateResult } from 'lit';

/** A codicon. Decoration only: whatever it says must stand beside it in words, or in a label. */
export const icon = (name: string, classes = ''): TemplateResult =>
  html`<span class="codicon codicon-${name} ${classes}" aria-hidden="true"></span>`;

/** A button that is only an icon. `label` is its name, and its tooltip. */
export const iconButton = (
  name: string,
  label: string,
  onClick: (event: Event) => void,
  classes = '',
): TemplateResult =>
  html`<button type="button" class="icon-button ${classes}" aria-label=${label} title=${label} @click=${onClick}>${icon(name)}</button>`;

/** Text under 'title' only if it says more than what is seen. */
export const tip = (text: string | null | undefined): string | typeof nothing => text || nothing;
