import type { ContentBlock } from '../../protocol/content.ts';
import type { SandboxId } from '../../protocol/ids.ts';
import type { SessionState, ToolCall } from '../state.ts';
import { type Html, html } from './html.ts';
import { duration, moment } from './words.ts';

/** One tool call: what it was to do, who allowed it, where it ran and what became of it. */
export function callHtml(state: SessionState, call: ToolCall): Html {
  const { result, execution } = call;
  const outcome = result?.outcome ?? 'open';
  const child = call.child ? state.threads.get(call.child) : undefined;
  return html`<article id="${call.id}">
<header><span>${call.name}</span><span class="${outcome}">${outcomeText(call)}</span>${result?.durationMs == null ? null : html`<span>${duration(result.durationMs)}</span>`}<time>${moment(call.at)}</time></header>
<pre class="code">${inputText(call)}</pre>
<p class="quiet">${allowedBy(call)}</p>
${execution?.sandbox ? html`<p class="quiet">Ran in ${sandboxText(state, execution.sandbox)}.</p>` : null}
${child ? html`<p class="quiet">Started <a href="#${child.id}">${child.agentName}</a>.</p>` : null}
${result ? resultHtml(result.content) : null}
</article>`;
}

const WHERE = { container: 'container', os: 'the OS sandbox', host: 'no sandbox:', none: 'a sandbox' } as const;

/** A sandbox that is gone has as its detail why it is. */
function sandboxText(state: SessionState, id: SandboxId): string {
  const sandbox = state.sandboxes.get(id);
  const what = WHERE[sandbox?.kind ?? 'none'];
  return sandbox?.state === 'ready' ? `${what} ${sandbox.detail}` : `${what} (${id}), which is gone`;
}

function outcomeText({ result, execution }: ToolCall): string {
  if (!result) return execution ? 'started, no result' : 'not run';
  const exit = result.exitCode === null || result.exitCode === 0 ? '' : `, exit code ${result.exitCode}`;
  return `${result.outcome.replace('_', ' ')}${exit}`;
}

/** A single text as it is, anything else as JSON. */
function inputText({ input }: ToolCall): string {
  const values = Object.values(input);
  return values.length === 1 && typeof values[0] === 'string' ? values[0] : JSON.stringify(input, null, 2);
}

/** Who let it happen, or did not, in a sentence. */
export function allowedBy(call: ToolCall): string {
  const { confirmation, permission, why, refused } = call;
  const because = why ? `: ${why.replace(/\.$/, '')}` : '';
  if (refused !== null) return `Refused before anybody was asked: ${refused}`;
  if (confirmation) {
    const { actor, at, result, denyMessage, standing } = confirmation;
    const who = actor?.type === 'person' ? `a person, in the ${actor.via}` : (actor?.type ?? 'a person');
    const reason = denyMessage ? `, saying: ${denyMessage}` : '';
    const always = standing ? ', from then on for this session' : '';
    return `Asked${because}. ${result === 'allow' ? 'Allowed' : 'Denied'} by ${who}, ${moment(at)}${always}${reason}`;
  }
  if (permission === 'deny') return `Denied by the rules${because}.`;
  if (permission === 'allow') return `Allowed by the rules${because}.`;
  return `Asked${because}. Nobody has answered.`;
}

function resultHtml(content: readonly ContentBlock[]): Html {
  const text = content.map(blockText).join('\n').trimEnd();
  if (text === '') return html`<p class="quiet">No output.</p>`;
  const lines = text.split('\n').length;
  return html`<details><summary>Output, ${lines} ${lines === 1 ? 'line' : 'lines'}</summary><pre class="code">${text}</pre></details>`;
}

/** A block as text; what is no text is named. */
export function blockText(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'search_result':
      return [block.title, block.source, ...block.content.map(({ text }) => text)].join('\n');
    case 'document':
      return block.source.type === 'text' ? block.source.data : `[document${sourceText(block.source)}]`;
    case 'image':
      return `[image${sourceText(block.source)}]`;
    case 'redacted':
      return '[redacted]';
  }
}

const sourceText = (source: { type: string; file_id?: string; url?: string }): string =>
  source.file_id ? ` ${source.file_id}` : source.url ? ` ${source.url}` : '';
