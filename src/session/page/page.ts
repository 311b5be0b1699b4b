import type { Entry, ModelRequest, Notice, Question, SessionState, ThreadInput, ThreadState } from '../state.ts';
import { blockText, callHtml } from './call.ts';
import { Html, html } from './html.ts';
import { STYLE } from './style.ts';
import { duration, moment, tokens, usd } from './words.ts';

export interface PageFacts {
  /** RFC 3339. */
  exportedAt: string;
  /** What a reader must know first: damage, what was taken out. */
  notes: readonly string[];
  /** SHA-256, base64, of `STYLE`: the page's own policy allows that style sheet and nothing else. */
  styleSha256: string;
}

/**
 * A session as one page that needs nothing else: no script, no font, no picture, no address. Every thread with its
 * conversation, each call with its outcome and who allowed it, and what it cost.
 */
export function page(state: SessionState, facts: PageFacts): string {
  const threads = [...state.threads.values()];
  const policy = `default-src 'none'; style-src 'sha256-${facts.styleSha256}'; base-uri 'none'; form-action 'none'`;
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${state.title}</title>
<style>${new Html(STYLE)}</style>
</head>
<body>
<h1>${state.title}</h1>
${facts.notes.length === 0 ? null : html`<div class="notes" role="note">${facts.notes.map((note) => html`<p>${note}</p>`)}</div>`}
${summary(state, facts)}
${costs(threads)}
<main>
${threads.map((thread) => threadHtml(state, thread))}
</main>
</body>
</html>
`.text;
}

function summary(state: SessionState, facts: PageFacts): Html {
  return html`<dl>
<dt>Session</dt><dd>${state.id}</dd>
<dt>Agent</dt><dd>${state.agent.name}</dd>
<dt>Environment</dt><dd>${state.environment.name}</dd>
<dt>Begun</dt><dd>${moment(state.createdAt)}</dd>
<dt>Last record</dt><dd>${moment(state.updatedAt)}</dd>
<dt>Cost</dt><dd>${usd(state.costUsd)}, ${tokens(state.usage)} tokens</dd>
<dt>At work</dt><dd>${duration(atWork(state))}</dd>
<dt>Head</dt><dd>record ${state.head.seq}, ${state.head.hash}</dd>
<dt>Exported</dt><dd>${moment(facts.exportedAt)}</dd>
</dl>`;
}

function costs(threads: readonly ThreadState[]): Html {
  return html`<table>
<thead><tr><th>Thread</th><th>State</th><th class="n">Tokens</th><th class="n">Cost</th><th class="n">At work</th></tr></thead>
<tbody>${threads.map(
    (thread) => html`
<tr><td><a href="#${thread.id}">${thread.agentName}</a></td><td>${thread.status}</td><td class="n">${tokens(thread.usage)}</td><td class="n">${usd(thread.costUsd)}</td><td class="n">${duration(atWork(thread))}</td></tr>`,
  )}
</tbody></table>`;
}

/** ms; a stretch that has not ended counts up to the last record. */
function atWork({ activeMs, runningSince, updatedAt }: SessionState | ThreadState): number {
  return activeMs + (runningSince === null ? 0 : Math.max(0, Date.parse(updatedAt) - Date.parse(runningSince)));
}

function threadHtml(state: SessionState, thread: ThreadState): Html {
  const parent = thread.parent ? state.threads.get(thread.parent) : undefined;
  return html`<section id="${thread.id}">
<h2>${thread.agentName}</h2>
${parent ? html`<p class="quiet">Started by <a href="#${thread.createdBy ?? parent.id}">${parent.agentName}</a>, ${moment(thread.createdAt)}.</p>` : null}
${thread.entries.map((entry) => entryHtml(state, thread, entry))}
</section>`;
}

function entryHtml(state: SessionState, thread: ThreadState, entry: Entry): Html {
  switch (entry.type) {
    case 'input':
      return inputHtml(state, entry);
    case 'request':
      return requestHtml(state, thread, entry);
    case 'notice':
      return noticeHtml(state, entry);
  }
}

function inputHtml(state: SessionState, input: ThreadInput): Html {
  const from = input.fromThread ? (state.threads.get(input.fromThread)?.agentName ?? 'Another thread') : 'A person';
  const queued = input.processedAt === null ? html`<span class="open">not read yet</span>` : null;
  return html`<article class="person" id="${input.id}">
<header><span>${from}</span>${queued}<time>${moment(input.at)}</time></header>
<pre class="text">${input.content.map(blockText).join('\n')}</pre>
</article>
`;
}

function requestHtml(state: SessionState, thread: ThreadState, request: ModelRequest): Html {
  const about = [request.model ?? '', usd(request.costUsd)].filter((part) => part !== '').join(' · ');
  if (request.state !== 'done') {
    const what =
      request.state === 'open' ? 'A request to the model without an answer' : 'A request to the model failed';
    const cause = request.cause ? `${what} (${request.cause.replaceAll('_', ' ')})` : what;
    return html`<article class="problem"><header><span>${cause}</span><time>${moment(request.at)}</time></header></article>
`;
  }
  return html`${request.blocks.map((block) => {
    if (block.type === 'message')
      return html`<article id="${block.id}">
<header><span>${thread.agentName}</span><span>${about}</span><time>${moment(request.endedAt ?? request.at)}</time></header>
<pre class="text">${block.content.map(blockText).join('\n')}</pre>
</article>
`;
    if (block.type === 'thinking') return thinkingHtml(block.raw);
    const call = state.calls.get(block.id);
    return call ? callHtml(state, call) : html``;
  })}`;
}

function thinkingHtml(raw: unknown): Html {
  const text = typeof raw === 'object' && raw !== null && 'thinking' in raw ? String(raw.thinking) : '';
  if (text === '') return html``;
  return html`<details><summary>Thinking</summary><pre class="text quiet">${text}</pre></details>
`;
}

function noticeHtml(state: SessionState, { notice, at, id }: Notice): Html {
  return html`<article class="${notice.kind === 'error' || notice.kind === 'damaged' ? 'problem' : 'note'}" id="${id}">
<header><span>${noticeText(state, notice)}</span><time>${moment(at)}</time></header>
</article>
`;
}

function questionText(question: Question | undefined): string {
  if (!question) return 'A question';
  const said = question.answer ? (question.answer.result === 'allow' ? 'yes' : 'no') : 'no answer';
  return `${question.why} (${said})`;
}

function noticeText(state: SessionState, notice: Notice['notice']): string {
  switch (notice.kind) {
    case 'error':
      return `${notice.error.type}: ${notice.error.message}`;
    case 'damaged':
      return `${notice.bytes} bytes of the log could not be read: ${notice.reason}`;
    case 'interrupted':
      return notice.actor?.type === 'person' ? `Interrupted by a person, in the ${notice.actor.via}` : 'Interrupted';
    case 'question':
      return questionText(state.questions.find((one) => one.id === notice.question));
    case 'secret':
      return `A secret (${notice.name}) was taken out of what was about to be ${notice.where === 'model_request' ? 'sent to the model' : 'stored'}`;
    case 'mcp':
      return `MCP server ${notice.server} offers ${notice.tools} ${notice.tools === 1 ? 'tool' : 'tools'}`;
    case 'sandbox':
      return `Sandbox ${notice.state}: ${notice.text}`;
    case 'restored':
      return `Files put back by a person: ${notice.files} changed`;
    case 'no_checkpoint':
      return `No checkpoint: ${notice.text}`;
    case 'forked':
      return `Forked from ${notice.from} at record ${notice.fromSeq}`;
  }
}
