import DOMPurify from 'dompurify';
import MarkdownIt, { type Token } from 'markdown-it';

/*
 * What a model writes is not trusted: HTML in it is shown as text, the result is purified all the same, and a picture
 * becomes a link, because fetching it would tell its host that it was read.
 */
const markdown = new MarkdownIt({ html: false, linkify: true, breaks: false });

/** The only places a link may lead to: the web, mail, and paths of the workspace. Never a command of the editor's. */
markdown.validateLink = (url) => /^(https?:|mailto:)/i.test(url) || !/^[a-z][a-z0-9+.-]*:/i.test(url);

const escaped = (text: string): string => markdown.utils.escapeHtml(text);

/** A block of code under a bar with its language and a copy button. */
function codeBlock(code: string, language: string): string {
  const name = escaped(language || 'text');
  return `<div class="code"><div class="code-bar"><span>${name}</span><button type="button" class="icon-button" data-copy="code" aria-label="Copy code" title="Copy code"><span class="codicon codicon-copy" aria-hidden="true"></span></button></div><pre tabindex="0" aria-label="Code, ${name}"><code>${escaped(code)}</code></pre></div>`;
}

markdown.renderer.rules.fence = (tokens, at) => {
  const token = tokens[at];
  return codeBlock(token?.content ?? '', token?.info.trim().split(/\s+/)[0] ?? '');
};
markdown.renderer.rules.code_block = (tokens, at) => codeBlock(tokens[at]?.content ?? '', '');
markdown.renderer.rules.image = (tokens, at) => {
  const token = tokens[at];
  const source = escaped(String(token?.attrGet('src') ?? ''));
  return `<a href="${source}">${escaped(token?.content || 'picture')}</a>`;
};
markdown.renderer.rules.table_open = () => '<div class="table-scroll"><table>';
markdown.renderer.rules.table_close = () => '</table></div>';

/** Alignment of table cells comes as a style attribute, which the panel's CSP forbids. */
markdown.core.ruler.push('no_styles', (state) => {
  const visit = (token: Token) => {
    const style = token.attrGet('style');
    if (style === null) return;
    token.attrs = (token.attrs ?? []).filter(([name]) => name !== 'style');
    if (String(style).endsWith('right')) token.attrJoin('class', 'align-right');
    else if (String(style).endsWith('center')) token.attrJoin('class', 'align-center');
  };
  for (const token of state.tokens) visit(token);
});

const ALLOWED = {
  USE_PROFILES: { html: true },
  ALLOWED_ATTR: ['href', 'title', 'class', 'type', 'data-copy', 'aria-label', 'aria-hidden', 'start', 'tabindex'],
  FORBID_TAGS: ['style', 'form', 'input', 'img', 'video', 'audio', 'source', 'picture'],
};

/** Texts kept rendered. A row that is scrolled away and back is not parsed again. */
const KEPT = 300;
const cache = new Map<string, string>();

/** Markdown as HTML that is safe to put into the page. */
export function renderMarkdown(text: string): string {
  const known = cache.get(text);
  if (known !== undefined) return known;
  const safe = DOMPurify.sanitize(markdown.render(text), ALLOWED);
  cache.set(text, safe);
  const oldest = cache.keys().next();
  if (cache.size > KEPT && !oldest.done) cache.delete(oldest.value);
  return safe;
}

/** The same for text that still grows: not kept. */
export const renderMarkdownLive = (text: string): string => DOMPurify.sanitize(markdown.render(text), ALLOWED);
