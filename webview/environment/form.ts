/// <reference types="vscode-webview" />
import { html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit';
import type { FormHostMessage, FormPageMessage } from '../../src/protocol/environment-form.ts';
import type { FieldProblem } from '../../src/protocol/environment-rules.ts';
import { icon } from '../parts.ts';
import { registerToolkit } from '../toolkit.ts';
import { type Draft, definitionOf, draftOf, type Kind, MANAGERS, type Manager, problemsOf, restOf } from './draft.ts';

registerToolkit();

/** After so many ms without a key the host is asked what is wrong. */
const CHECK_MS = 300;

type Choice<T> = readonly [value: T, name: string, about: string];

const KINDS: readonly Choice<Kind>[] = [
  ['devcontainer', 'Dev container', 'A container of the folder’s own devcontainer.json.'],
  ['image', 'Container image', 'A container of an image that you name, with packages if you like.'],
  ['os', 'OS sandbox', 'The sandbox of the operating system; no container engine is needed.'],
  ['host', 'This machine, no sandbox', 'Commands act on this machine itself. Every single call asks you first.'],
];
const WORKSPACES: readonly Choice<Draft['workspace']>[] = [
  ['bind', 'In your folder', 'What a session changes is in your folder at once.'],
  ['isolated', 'On a copy of its own', 'You review the changes and apply those you want.'],
];
const LIFETIMES: readonly Choice<Draft['lifetime']>[] = [
  ['session', 'One for the whole session', 'Installed programs and running servers stay from call to call.'],
  ['call', 'A fresh one for each call', 'Only what is in the workspace stays.'],
];
const NETWORKS: readonly Choice<Draft['network']>[] = [
  ['usual', 'The registries of package managers', 'The default.'],
  ['none', 'Nothing', 'No connection to anywhere.'],
  ['limited', 'These hosts only', 'Named below.'],
  ['unrestricted', 'Everything', 'Any host, whatever an agent asks for.'],
];

/** The page of one environment. It holds what is typed and nothing else: what is right is for the host to say. */
export class EnvironmentForm extends LitElement {
  static override properties: PropertyDeclarations = {
    draft: { attribute: false },
    problems: { attribute: false },
    tried: { attribute: false },
  };
  declare draft: Draft | null;
  declare problems: readonly FieldProblem[];
  /** Saving was tried: from now on everything that is wrong is shown, not only what was touched. */
  declare tried: boolean;
  readonly #api = acquireVsCodeApi<unknown>();
  readonly #touched = new Set<string>();
  #existing = false;
  #folder = '';
  #check: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    super();
    this.draft = null;
    this.problems = [];
    this.tried = false;
    window.addEventListener('message', (event: MessageEvent<FormHostMessage>) => this.#hear(event.data));
  }

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#post({ type: 'ready' });
  }

  #hear(message: FormHostMessage): void {
    if (message.type === 'problems') {
      this.problems = message.problems;
      if (this.tried && message.problems.length > 0) void this.updateComplete.then(() => this.#focusFirst());
      return;
    }
    if (message.type !== 'show') return;
    this.draft = draftOf(message.definition);
    this.#existing = message.existing;
    this.#folder = message.folder;
    void this.updateComplete.then(() => this.querySelector<HTMLElement>('[data-field="name"]')?.focus());
  }

  protected override render(): TemplateResult {
    const { draft } = this;
    if (!draft) return html`<p class="opening">${icon('loading', 'codicon-modifier-spin')}Opening…</p>`;
    const container = draft.kind === 'image' || draft.kind === 'devcontainer';
    return html`<form novalidate @submit=${this.#submit}>
      <h1>${this.#existing ? `Environment “${draft.name}”` : 'New environment'}</h1>
      <p class="quiet">Where sessions in ${this.#folder} run their commands. Sessions that run keep the environment they began with.</p>
      ${this.#summary()}
      ${this.#text('name', 'Name', draft.name, (name) => ({ name }), { placeholder: 'Node 24' })}
      ${this.#text('description', 'Description', draft.description, (description) => ({ description }), { placeholder: 'What it is good for' })}
      ${this.#choice('config.type', 'Commands run in', KINDS, draft.kind, (kind) => ({ kind }), this.#existing)}
      ${draft.kind === 'host' ? html`<p class="warning" role="note">${icon('warning')}<span>Nothing holds what runs here: an agent could do whatever you can do on this machine. Use it only where no sandbox will do.</span></p>` : nothing}
      ${draft.kind === 'image' ? this.#text('config.image', 'Image', draft.image, (image) => ({ image }), { placeholder: 'node:24', mono: true }) : nothing}
      ${draft.kind === 'devcontainer' ? this.#text('config.path', 'devcontainer.json', draft.path, (path) => ({ path }), { placeholder: 'the folder’s default one', mono: true }) : nothing}
      ${this.#choice('workspace', 'A session works', WORKSPACES, draft.workspace, (workspace) => ({ workspace }))}
      ${draft.kind === 'host' ? nothing : this.#choice('lifetime', 'Sandbox', LIFETIMES, draft.lifetime, (lifetime) => ({ lifetime }))}
      ${draft.kind === 'host' ? nothing : this.#network(draft)}
      ${container ? this.#limits(draft) : nothing}
      ${draft.kind === 'image' ? this.#packages(draft) : nothing}
      <div class="buttons">
        <vscode-button appearance="primary" @click=${this.#save}>${this.#existing ? 'Save' : 'Create'}</vscode-button>
        <vscode-button appearance="secondary" @click=${() => this.#post({ type: 'cancel' })}>Cancel</vscode-button>
        <vscode-button class="push" appearance="secondary" @click=${() => this.#post({ type: 'edit_json', definition: definitionOf(draft) })}>Edit as JSON</vscode-button>
      </div>
    </form>`;
  }

  #network(draft: Draft): TemplateResult {
    const hosts = draft.network === 'limited';
    return html`${this.#choice('config.networking', 'It may connect to', NETWORKS, draft.network, (network) => ({ network }))}
      ${
        hosts
          ? html`<div class="nested">
              ${this.#lines('config.networking.allowed_hosts', 'Hosts, one in a line', draft.hosts, (text) => ({ hosts: text }), 'api.example.com\n*.example.org')}
              ${this.#tick('config.networking.allow_package_managers', 'The registries of package managers, too', draft.packageManagers, (packageManagers) => ({ packageManagers }))}
              ${this.#tick('config.networking.allow_mcp_servers', 'The MCP servers of the agent, too', draft.mcpServers, (mcpServers) => ({ mcpServers }))}
            </div>`
          : nothing
      }`;
  }

  #limits(draft: Draft): TemplateResult {
    return html`<fieldset><legend>Limits <span class="quiet">(empty: the engine’s own)</span></legend><div class="row">
      ${this.#text('limits.memory_mib', 'Memory, MiB', draft.memory, (memory) => ({ memory }), { narrow: true })}
      ${this.#text('limits.cpus', 'Processors', draft.cpus, (cpus) => ({ cpus }), { narrow: true })}
      ${this.#text('limits.pids', 'Processes', draft.pids, (pids) => ({ pids }), { narrow: true })}
    </div></fieldset>`;
  }

  #packages(draft: Draft): TemplateResult {
    const field = (manager: Manager) =>
      this.#lines(`config.packages.${manager}`, manager, draft.packages[manager], (text) => ({
        packages: { ...draft.packages, [manager]: text },
      }));
    return html`<fieldset><legend>Packages <span class="quiet">(installed in this order, one in a line, once for all sessions)</span></legend>
      <div class="grid">${MANAGERS.map(field)}</div></fieldset>`;
  }

  /** What is wrong that stands beside no field, and after a try how much there is. */
  #summary(): TemplateResult | typeof nothing {
    const { problems } = this;
    if (!this.tried || problems.length === 0) return nothing;
    const shown = [...this.querySelectorAll<HTMLElement>('[data-field]')].map((one) => one.dataset.field ?? '');
    const rest = restOf(problems, shown);
    return html`<div class="summary" role="alert">${icon('error')}<div>
      <p>Not saved: ${problems.length === 1 ? 'one thing needs' : `${problems.length} things need`} to be corrected.</p>
      ${rest.map(({ field, message }) => html`<p>${field ? html`<code>${field}</code>: ` : nothing}${message}</p>`)}
    </div></div>`;
  }

  #text(
    field: string,
    name: string,
    value: string,
    change: (value: string) => Partial<Draft>,
    look: { placeholder?: string; mono?: boolean; narrow?: boolean } = {},
  ): TemplateResult {
    const { errors, id, wrong } = this.#errors(field);
    return html`<div class="field ${look.narrow ? 'narrow' : ''}">
      <label for=${id}>${name}</label>
      <input type="text" id=${id} data-field=${field} class=${look.mono ? 'mono' : ''} .value=${value} placeholder=${look.placeholder ?? ''}
        aria-invalid=${wrong} aria-describedby="${id}-errors" @input=${(event: Event) => this.#typed(field, change(typedIn(event)))}>
      ${errors}
    </div>`;
  }

  #lines(
    field: string,
    name: string,
    value: string,
    change: (value: string) => Partial<Draft>,
    placeholder = '',
  ): TemplateResult {
    const { errors, id, wrong } = this.#errors(field);
    return html`<div class="field">
      <label for=${id}>${name}</label>
      <textarea id=${id} data-field=${field} class="mono" rows="2" spellcheck="false" .value=${value} placeholder=${placeholder}
        aria-invalid=${wrong} aria-describedby="${id}-errors" @input=${(event: Event) => this.#typed(field, change(typedIn(event)))}></textarea>
      ${errors}
    </div>`;
  }

  #tick(field: string, name: string, value: boolean, change: (value: boolean) => Partial<Draft>): TemplateResult {
    const { errors, id } = this.#errors(field);
    return html`<div class="field">
      <label class="choice"><input type="checkbox" id=${id} data-field=${field} .checked=${value} aria-describedby="${id}-errors"
        @change=${(event: Event) => this.#typed(field, change((event.target as HTMLInputElement).checked))}><span>${name}</span></label>
      ${errors}
    </div>`;
  }

  #choice<T extends string>(
    field: string,
    name: string,
    choices: readonly Choice<T>[],
    value: T,
    change: (value: T) => Partial<Draft>,
    fixed = false,
  ): TemplateResult {
    const { errors, id } = this.#errors(field);
    const choose = (chosen: T) => {
      if (chosen !== value) this.#typed(field, change(chosen));
    };
    return html`<fieldset class="field"><legend id=${id} data-field=${field}>${name}${fixed ? html` <span class="quiet">(fixed once it is made)</span>` : nothing}</legend>
      ${choices
        .filter(([one]) => !fixed || one === value)
        .map(
          ([one, label, about]) =>
            html`<label class="choice"><input type="radio" name=${field} value=${one} .checked=${one === value} ?disabled=${fixed} @change=${() => choose(one)}><span>${label}<span class="quiet about">${about}</span></span></label>`,
        )}
      ${errors}
    </fieldset>`;
  }

  #errors(field: string): { errors: TemplateResult; id: string; wrong: boolean } {
    const id = `field-${field.replaceAll('.', '-')}`;
    const shown = this.tried || this.#touched.has(field) ? this.#own(field) : [];
    const errors = html`<div id="${id}-errors" class="errors">${shown.map(({ message }) => html`<p>${icon('error')}<span>${message}</span></p>`)}</div>`;
    return { errors, id, wrong: shown.length > 0 };
  }

  /** A group's own problems, not those of fields in it that are shown for themselves. */
  #own(field: string): readonly FieldProblem[] {
    const all = problemsOf(this.problems, field);
    if (field !== 'config.networking') return all;
    return all.filter((one) => this.draft?.network !== 'limited' || one.field === field);
  }

  #typed(field: string, change: Partial<Draft>): void {
    if (!this.draft) return;
    this.draft = { ...this.draft, ...change };
    this.#touched.add(field);
    clearTimeout(this.#check);
    this.#check = setTimeout(() => {
      if (this.draft) this.#post({ type: 'check', definition: definitionOf(this.draft) });
    }, CHECK_MS);
  }

  readonly #submit = (event: Event): void => {
    event.preventDefault();
    this.#save();
  };

  readonly #save = (): void => {
    if (!this.draft) return;
    clearTimeout(this.#check);
    this.tried = true;
    this.#post({ type: 'save', definition: definitionOf(this.draft) });
  };

  #focusFirst(): void {
    this.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }

  #post(message: FormPageMessage): void {
    this.#api.postMessage(message);
  }
}
customElements.define('drover-environment', EnvironmentForm);

const typedIn = (event: Event): string => (event.target as HTMLInputElement).value;
