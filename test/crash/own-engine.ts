import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { docker } from '../support/engine.ts';
import { eventually } from '../support/eventually.ts';

const IMAGES = fileURLToPath(new URL('../../scripts/image.mjs', import.meta.url));

/** Whether an engine of our own can be had here, beside the one that others use. */
export function canHaveEngine(): boolean {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false;
  return (
    spawnSync('sh', ['-c', 'command -v dockerd unshare nsenter && unshare --net --mount --pid --fork true']).status ===
    0
  );
}

/**
 * A container engine that may be killed: nobody else uses it. It lives in namespaces of its own, so that it and the
 * machine's engine don't touch each other's networks and mounts; when their first process ends, all of it ends.
 */
export class OwnEngine {
  /** In DOCKER_HOST's form. */
  readonly host: string;
  /** Kills the engine, starts it again, and returns when it answers. */
  readonly restart: readonly string[];
  readonly #first: ChildProcess;
  readonly #cgroup: string;

  private constructor(first: ChildProcess, folder: string, cgroup: string, inside: number) {
    this.#first = first;
    this.#cgroup = cgroup;
    this.host = `unix://${folder}/docker.sock`;
    const daemon = [
      `dockerd -H ${this.host} --data-root ${folder}/data --exec-root ${folder}/exec --pidfile ${folder}/docker.pid`,
      `--storage-driver overlay2 --bridge none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false`,
      `--cgroup-parent /${cgroup} >>${folder}/log 2>&1 </dev/null`,
    ].join(' ');
    const stale = `${folder}/docker.pid ${folder}/exec/containerd/containerd.pid`;
    const kill = `[ ! -f ${folder}/docker.pid ] || { kill -KILL $(cat ${folder}/docker.pid); rm -f ${stale}; }`;
    const start = `nsenter --target ${inside} --net --mount --pid sh -c '${kill}; setsid ${daemon} &'`;
    const wait = `for i in $(seq 150); do docker -H ${this.host} version && exit 0; sleep 0.1; done; exit 1`;
    this.restart = ['sh', '-c', `${start}; ${wait}`];
  }

  /** Starts it, with the small image in it. `folder` is made, and not removed. */
  static async start(folder: string): Promise<OwnEngine> {
    mkdirSync(folder, { recursive: true });
    const namespaces = ['--net', '--mount', '--pid', '--mount-proc', '--fork', '--kill-child'];
    // It ends when its input does: with us, however we end.
    const first = spawn('unshare', [...namespaces, 'cat'], { stdio: ['pipe', 'ignore', 'ignore'] });
    const inside = await eventually('the first process of the namespaces', 5000, () => childOf(first.pid));
    const engine = new OwnEngine(first, folder, `drover-crash-${process.pid}`, inside);
    try {
      const [program = '', ...args] = engine.restart;
      execFileSync(program, args, { stdio: 'pipe', timeout: 60_000 });
      const env = { ...process.env, DOCKER_HOST: engine.host };
      execFileSync(process.execPath, [IMAGES, 'tiny'], { env, stdio: 'pipe', timeout: 60_000 });
    } catch (error) {
      await engine[Symbol.asyncDispose]();
      throw error;
    }
    return engine;
  }

  docker(...args: string[]): string {
    return docker('-H', this.host, ...args);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = once(this.#first, 'close');
    this.#first.kill('SIGKILL');
    await gone;
    // Nothing is in them any more, and nobody else made any of this name.
    const remove = `find /sys/fs/cgroup -depth -type d -path '*/${this.#cgroup}*' -exec rmdir {} +`;
    await eventually('its groups to be empty', 10_000, () => spawnSync('sh', ['-c', remove]).status === 0);
  }
}

function childOf(pid: number | undefined): number | undefined {
  const children = readFileSync(join('/proc', String(pid), 'task', String(pid), 'children'), 'utf8').trim();
  return Number(children.split(' ')[0]) || undefined;
}
