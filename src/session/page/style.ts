/** The page's whole style sheet; light and dark as the reader's system is. */
export const STYLE = `
:root { color-scheme: light dark; --text: #1c2120; --quiet: #5b6664; --back: #fbfbf9; --card: #ffffff; --line: #d8dddb; --good: #1d6b4f; --bad: #a3271f; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) {
  :root { --text: #dfe5e3; --quiet: #98a5a2; --back: #151918; --card: #1c2221; --line: #333c3a; --good: #6cc9a1; --bad: #f08a80; --warn: #e0b45c; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 4rem; font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .25rem; padding-top: 1rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 0; }
p { margin: .25rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .5rem 0; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; margin: .75rem 0; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
pre { margin: .4rem 0; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; }
pre.code { font: 12.5px/1.45 ui-monospace, monospace; background: var(--back); border: 1px solid var(--line); border-radius: 4px; padding: .5rem .6rem; }
.text { font: inherit; }
article { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .6rem .8rem; margin: .6rem 0; }
article.person { border-left: 3px solid var(--good); }
article.problem { border-left: 3px solid var(--bad); }
header, .quiet { color: var(--quiet); }
article > header { display: flex; gap: .75rem; align-items: baseline; flex-wrap: wrap; font-size: .85rem; }
article > header > :first-child { color: var(--text); font-weight: 600; }
.ok { color: var(--good); } .failed, .lost, .timed_out, .unknown { color: var(--bad); } .denied, .cancelled, .open { color: var(--warn); }
summary { cursor: pointer; color: var(--quiet); }
.notes { border: 1px solid var(--warn); border-radius: 6px; padding: .5rem .8rem; }
@media print { details { display: block; } body { max-width: none; } }
`;
