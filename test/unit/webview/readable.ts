/*
 * Checks that run inside the page. Each is one self-contained function, because it is sent there as text.
 */

/** Elements that can be pressed or typed into and have no name. */
export function nameless(): string[] {
  const labelled = (element: Element): boolean => {
    const by = element.getAttribute('aria-labelledby');
    if (by?.split(' ').some((id) => document.getElementById(id)?.textContent?.trim())) return true;
    return Boolean(element.getAttribute('aria-label')?.trim() || element.textContent?.trim());
  };
  return [
    ...document.querySelectorAll('button, vscode-button, textarea, vscode-text-field, a[href], [role], pre[tabindex]'),
  ]
    .filter(
      (element) =>
        element.getAttribute('aria-hidden') !== 'true' &&
        !['presentation', 'status', 'tabpanel', 'alert'].includes(element.getAttribute('role') ?? ''),
    )
    .filter((element) => !labelled(element))
    .map((element) => element.outerHTML.slice(0, 120));
}

/**
 * What differs too little from what is behind it: text, and signs (icons, outlines of what is drawn), for which a ratio of
 * 3 is enough; each with its ratio and words. Coloured terminal output is left out: its colours are the theme's own
 * choice for its own terminal. @param least allowed ratio for text
 */
export function lowContrast(least: number): string[] {
  type Color = [number, number, number, number];
  // Colours may be mixed in any space: the browser itself is asked what comes out of it.
  const pixel = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const known = new Map<string, Color>();
  const parse = (text: string): Color => {
    const before = known.get(text);
    if (before) return before;
    if (!pixel) throw new Error('This browser does not draw.');
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = text;
    pixel.fillRect(0, 0, 1, 1);
    const [r = 0, g = 0, b = 0, a = 0] = pixel.getImageData(0, 0, 1, 1).data;
    known.set(text, [r, g, b, a / 255]);
    return [r, g, b, a / 255];
  };
  const over = (top: Color, under: Color): Color => {
    const mix = (i: 0 | 1 | 2) => top[i] * top[3] + under[i] * (1 - top[3]);
    return [mix(0), mix(1), mix(2), 1];
  };
  const behind = (element: Element | null): Color => {
    if (!element) return [255, 255, 255, 1];
    const own = parse(getComputedStyle(element).backgroundColor);
    return own[3] >= 1 ? own : over(own, behind(element.parentElement));
  };
  const light = (color: Color): number => {
    const part = (value: number) =>
      value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(color[0]) + 0.7152 * part(color[1]) + 0.0722 * part(color[2]);
  };
  const ratioOf = (ink: Color, ground: Color): number => {
    const [a = 0, b = 0] = [light(ground), light(over(ink, ground))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  /** How much of an element can be seen, from 0 to 1. */
  const shown = (element: Element | null): number =>
    element ? Number(getComputedStyle(element).opacity) * shown(element.parentElement) : 1;
  const found: string[] = [];
  const look = (element: Element, colour: string, needed: number, ground: Color) => {
    const [r, g, b, a] = parse(colour);
    const ratio = ratioOf([r, g, b, a * shown(element)], ground);
    const words = (element.textContent || element.parentElement?.textContent || '').trim().slice(0, 40);
    if (ratio < needed) found.push(`${ratio.toFixed(2)} ${element.getAttribute('class')} ${words}`);
  };
  for (const element of document.querySelectorAll('drover-panel *, drover-environment *')) {
    const style = getComputedStyle(element);
    const unseen = element.getBoundingClientRect().width < 2 || style.visibility === 'hidden' || shown(element) === 0;
    if (unseen || element.closest('.visually-hidden, .grow, :disabled, .terminal [class^="fg-"]')) continue;
    const lane = () => behind(element.closest('svg'));
    const bar = element.closest('.bar');
    if (element.matches('.bar rect')) look(element, style.stroke, 3, lane());
    else if (element.matches('.bar .kept')) look(element, style.fill, 3, lane());
    else if (bar && element.matches('text')) {
      const rect = bar.querySelector('rect');
      look(element, style.fill, least, rect ? parse(getComputedStyle(rect).fill) : lane());
    } else if (element.matches('svg text')) look(element, style.fill, least, lane());
    else if (element.matches('.swatch')) look(element, style.borderTopColor, 3, behind(element.parentElement));
    else if (element.matches('.codicon')) look(element, style.color, 3, behind(element));
    else if ([...element.childNodes].some((node) => node.nodeType === 3 && node.textContent?.trim()))
      look(element, style.color, least, behind(element));
  }
  return found;
}
