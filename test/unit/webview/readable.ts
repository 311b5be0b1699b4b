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
 * Text whose colour differs too little from what is behind it: the ratio and its words. Coloured terminal output is left
 * out: its colours are the theme's own choice for its own terminal. @param least allowed ratio
 */
export function lowContrast(least: number): string[] {
  type Color = [number, number, number, number];
  const parse = (text: string): Color => {
    const srgb = text.startsWith('color(srgb');
    const numbers = (text.match(/[\d.]+/g) ?? []).map(Number);
    const [r = 0, g = 0, b = 0, a = 1] = numbers;
    return srgb ? [r * 255, g * 255, b * 255, a] : [r, g, b, a];
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
  const found: string[] = [];
  for (const element of document.querySelectorAll('drover-panel *')) {
    const words = [...element.childNodes].filter((node) => node.nodeType === 3 && node.textContent?.trim());
    const box = element.getBoundingClientRect();
    if (
      words.length === 0 ||
      box.width < 2 ||
      element instanceof SVGElement ||
      element.closest('.visually-hidden, .grow, :disabled, .terminal [class^="fg-"]')
    )
      continue;
    const ground = behind(element);
    const ink = over(parse(getComputedStyle(element).color), ground);
    const [a, b] = [light(ground), light(ink)].sort((x, y) => y - x) as [number, number];
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < least)
      found.push(`${ratio.toFixed(2)} ${element.className} ${words[0]?.textContent?.trim().slice(0, 40)}`);
  }
  return found;
}
