import { html, nothing, type TemplateResult } from 'lit';
import type { ExecutionId } from '../../src/protocol/ids.ts';
import { bytes, count } from '../format.ts';
import { icon } from '../parts.ts';
import type { Store } from '../store.ts';
import { View } from '../view.ts';
import { visible } from '../visible.ts';
import { type HostSum, type NetworkEvent, reasonWords } from './ledger.ts';

/** Whom the session's sandboxes connected to, or tried to, summed by host. */
export class Network extends View {
  protected override render(): TemplateResult {
    const hosts = this.store.index.network.hosts();
    if (hosts.length === 0)
      return html`<p class="quiet none">Nothing has left the sandbox, and nothing has tried to.</p>`;
    const sum = (of: (host: HostSum) => number) => hosts.reduce((total, host) => total + of(host), 0);
    const stopped = sum((host) => host.stopped);
    return html`<div class="network">
      <p class="quiet">${count(
        sum((host) => host.connections),
        'connection',
      )} to ${count(hosts.length, 'host')}${stopped ? `, ${stopped} of them stopped` : ''}; ${bytes(sum((host) => host.bytesOut))} out, ${bytes(sum((host) => host.bytesIn))} in.</p>
      <table aria-label="Hosts">
        <thead><tr><th scope="col">Host</th><th scope="col">Connections</th><th scope="col">Out</th><th scope="col">In</th><th scope="col">Credential</th><th scope="col">Stopped</th></tr></thead>
        <tbody>${hosts.map((host) => this.#row(host))}</tbody>
      </table>
    </div>`;
  }

  #row(host: HostSum): TemplateResult {
    const why = host.stopped > 0 ? `${host.stopped}: ${reasonWords(host.reason)}` : '';
    return html`<tr>
      <th scope="row" class="mono">${visible(host.host)}:${host.port}</th>
      <td>${host.connections}</td><td>${bytes(host.bytesOut)}</td><td>${bytes(host.bytesIn)}</td>
      <td>${host.credentials.size > 0 ? html`${icon('key')}<span>${[...host.credentials].join(', ')}</span>` : nothing}</td>
      <td class=${host.stopped > 0 ? 'warn' : ''}>${why}</td>
    </tr>`;
  }
}
customElements.define('drover-network', Network);

/** The connections of one attempt at a call, for its story. */
export function callNetwork(store: Store, execution: ExecutionId | undefined): TemplateResult | typeof nothing {
  const events = execution ? store.index.network.of(execution) : [];
  if (events.length === 0) return nothing;
  return html`<h3>Network</h3><ul class="call-network">${events.map((event) => html`<li class=${event.verdict === 'allowed' ? '' : 'warn'}>${connection(event)}</li>`)}</ul>`;
}

function connection(event: NetworkEvent): TemplateResult {
  const times = event.count > 1 ? ` × ${event.count}` : '';
  const status = event.status === null ? '' : ` → ${event.status}`;
  const stopped = event.verdict === 'allowed' ? '' : `, ${event.verdict}: ${reasonWords(event.reason)}`;
  const credentials = event.credential_ids.length > 0 ? `, with ${event.credential_ids.join(', ')}` : '';
  return html`<span class="mono">${visible(`${event.method} ${event.host}:${event.port}${event.path ?? ''}`)}${times}${status}</span> <span class="quiet">${bytes(event.bytes_out)} out, ${bytes(event.bytes_in)} in${credentials}${stopped}</span>`;
}
