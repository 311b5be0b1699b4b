/** Markup that is known to be ours. Only `html` makes it, so text from a log can never become any. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Value = string | number | null | Html | readonly Html[];

/** Markup with values in it: text is escaped, markup stays, null is left out. */
export function html(parts: TemplateStringsArray, ...values: Value[]): Html {
  let text = parts[0] ?? '';
  for (const [n, value] of values.entries()) text += markup(value) + (parts[n + 1] ?? '');
  return new Html(text);
}

function markup(value: Value): string {
  if (value === null) return '';
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map(({ text }) => text).join('');
  return escaped(String(value));
}

const NAMES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const COLOURS = new RegExp(`${String.fromCharCode(0x1b)}\\[[0-9;?]*[ -/]*[@-~]`, 'g');
/** They make what follows stand elsewhere than it is: a command could look like another one. */
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;

/** As text between tags or in a quoted attribute. A terminal's colours go; other control characters become visible. */
const escaped = (text: string): string =>
  text
    .replace(COLOURS, '')
    .replace(/\r\n/g, '\n')
    .replace(/\p{Cc}/gu, (one) => (one === '\n' || one === '\t' ? one : picture(one.charCodeAt(0))))
    .replace(TURNS, (one) => `[U+${one.charCodeAt(0).toString(16).toUpperCase()}]`)
    .replace(/[&<>"']/g, (one) => NAMES[one] ?? one)
    .toWellFormed();

/** The sign that stands for a control character. */
const picture = (code: number): string =>
  String.fromCharCode(code < 0x20 ? 0x2400 + code : code === 0x7f ? 0x2421 : 0xfffd);
