import { type Browser, chromium } from 'playwright-core';

/** Chromium without a sandbox of its own (root has none) and without calls to its maker. */
const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** @param program of the browser */
export const openBrowser = (program: string): Promise<Browser> =>
  chromium.launch({ executablePath: program, args: flags, headless: true });
