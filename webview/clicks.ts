import type { Host } from './host.ts';

/** Clicks inside rendered markdown, where no listener of a template can be: copying code, and links to files. */
export function followClick(host: Host, event: MouseEvent): void {
  const target = event.target instanceof Element ? event.target : null;
  const copy = target?.closest('[data-copy]');
  if (copy) {
    host.post({ type: 'copy', text: copy.closest('.code')?.querySelector('code')?.textContent ?? '' });
    return;
  }
  const href = target?.closest('.markdown a')?.getAttribute('href');
  if (!href || /^[a-z][a-z0-9+.-]*:/i.test(href)) return;
  event.preventDefault();
  if (!href.startsWith('#')) host.post({ type: 'open_file', path: decodePath(href) });
}

function decodePath(href: string): string {
  try {
    return decodeURI(href);
  } catch {
    return href;
  }
}
