import { readdirSync, readFileSync } from 'node:fs';
import type { Server } from '../../scripts/vscode.mjs';
import { eventually } from './eventually.ts';

/** Pids of the server's extension hosts, oldest first. Linux only: it reads /proc. */
export function extensionHosts(server: Pick<Server, 'mark'>): number[] {
  const hosts: number[] = [];
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!pid || !read(pid, 'cmdline').includes('--type=extensionHost')) continue;
    if (read(pid, 'environ').includes(`DROVER_RUN=${server.mark}`)) hosts.push(pid);
  }
  return hosts.sort((a, b) => a - b);
}

/** Ends the extension host the hard way, as a crash does, and waits until VS Code has started another. */
export async function killExtensionHost(server: Pick<Server, 'mark'>): Promise<void> {
  const before = extensionHosts(server);
  if (before.length === 0) throw new Error('There is no extension host to kill.');
  for (const pid of before) process.kill(pid, 'SIGKILL');
  await eventually('a new extension host', 30_000, () => {
    return extensionHosts(server).some((pid) => !before.includes(pid));
  });
}

/** How many processes of this machine, in sandboxes too, have exactly this command line. Linux only. */
export function running(...commandLine: string[]): number {
  const line = `${commandLine.join('\0')}\0`;
  return readdirSync('/proc').filter((name) => Number(name) && read(Number(name), 'cmdline') === line).length;
}

function read(pid: number, file: 'cmdline' | 'environ'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    // It has ended meanwhile, or is not ours to read.
    return '';
  }
}
