import { chmod, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { basename, join } from 'node:path';
import { type Duplex, PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import type { ExecutionId, SandboxId } from '../../protocol/ids.ts';
import { type Egress, type EgressSession, type Gate, INSIDE } from '../../vault/egress.ts';
import { SandboxUnavailable } from '../sandbox.ts';
import { type Engine, reasonOf } from './client.ts';
import { demultiplexer } from './demultiplex.ts';
import { LABEL } from './labels.ts';
import type { PlannedMount } from './plan.ts';
import { RELAY_PROGRAMS } from './relay-programs.ts';
import { RelayWire } from './relay-wire.ts';

/*
 * A container has no network at all: only its own loopback. The one way out is a relay, a program of a few kilobytes
 * that listens there and carries connections to the egress proxy in this process. docs/security.md says why so.
 */

const FOLDER = INSIDE.folder;
const RELAY = 'relay';
const SOCKET = 'proxy.sock';
/** A user of its own: nothing else inside may end the relay or look into it. */
const RELAY_USER = '65533:65533';
const READY_MS = 15_000;
/** A relay that dies is started again, not more often than this in a row. */
const RESTARTS = 5;
const RESTART_MS = 300;
/** What can wait does so until the calls have begun that a container was found again for. */
const LATER_MS = 1000;
/** So often an exec is asked whether it has ended, every `RESTART_MS`. */
const NOTICED_LATE = 20;
/** The exit code of a relay that another one has told to end. */
const ENDED = 143;
/** Bytes of a unix socket's address, the closing zero not counted. */
const LONGEST_SOCKET = 107;

export interface WayOutOptions {
  egress: Egress;
  engine: Engine;
  id: SandboxId;
  session: EgressSession;
  cacheFolder: string;
}

/** The way out of one container, from before it is made until it is gone. */
export class WayOut {
  readonly #gate: Gate;
  /** On this machine; undefined where the engine can't see it, and the files are put into the container. */
  readonly #folder: string | undefined;
  readonly #contents: readonly Content[];
  readonly #door: Server | undefined;
  readonly #foundAgain: boolean;
  #stream: Duplex | undefined;
  /** The first start, when the engine told of the container: true if it went well. */
  #early: Promise<boolean> | undefined;
  #restarts = 0;
  #closed = false;

  private constructor(
    gate: Gate,
    contents: readonly Content[],
    { folder, door, foundAgain }: { folder?: string; door?: Server | undefined; foundAgain: boolean },
  ) {
    this.#gate = gate;
    this.#contents = contents;
    this.#folder = folder;
    this.#door = door;
    this.#foundAgain = foundAgain;
  }

  /** `container`: one that is found again, whose variables have the proxy's token. */
  static async open(options: WayOutOptions, container?: Docker.Container): Promise<WayOut> {
    const token = container ? tokenIn((await container.inspect()).Config.Env) : undefined;
    const gate = await options.egress.open(options.session, token);
    const folder = folderOf(options.cacheFolder, options.id);
    const foundAgain = container !== undefined;
    try {
      const contents = await contentsFor(gate, options.engine);
      if (options.engine.elsewhere) return new WayOut(gate, contents, { foundAgain });
      await furnish(folder, contents);
      return new WayOut(gate, contents, { folder, door: await openDoor(gate, join(folder, SOCKET)), foundAgain });
    } catch (error) {
      await gate.close();
      throw error;
    }
  }

  /** What the container is made with. */
  get env(): Readonly<Record<string, string>> {
    return this.#gate.env;
  }

  get mount(): PlannedMount | undefined {
    if (this.#folder === undefined) return undefined;
    return { type: 'bind', source: this.#folder, target: FOLDER, readOnly: true };
  }

  envFor(execution: ExecutionId): Readonly<Record<string, string>> {
    return this.#gate.envFor(execution);
  }

  actFor(server: ExecutionId, call: ExecutionId): () => void {
    return this.#gate.actFor(server, call);
  }

  settle(execution: ExecutionId): Promise<void> {
    return this.#gate.settle(execution);
  }

  /**
   * Starts the relay in the running container and waits until it listens. Throws `SandboxUnavailable`.
   * `becomesImage`: the session's authority is named by variables alone, nothing of it is written inside.
   */
  async enter(container: Docker.Container, { becomesImage = false } = {}): Promise<void> {
    // Two that start side by side would end each other.
    const early = this.#early;
    this.#early = undefined;
    if ((await early) && this.#stream) return;
    this.#stream?.destroy();
    try {
      await this.#start(container, becomesImage);
    } catch (error) {
      throw new SandboxUnavailable(
        'container',
        `The sandbox's way to the network could not be opened (${reasonOf(error)}); try again, or look whether the image forbids programs in ${FOLDER}.`,
        { cause: error },
      );
    }
  }

  /**
   * Enters the container as soon as the engine has started it, before whoever makes it runs anything in it.
   * Returns how to stop waiting.
   */
  async enterWhenStarted({ docker }: Engine, labels: Readonly<Record<string, string>>): Promise<() => void> {
    // Services beside it have the same labels but for the place of the workspace.
    const label = [...Object.entries(labels).map(([name, value]) => `${name}=${value}`), LABEL.inside];
    const filters = { event: ['start'], type: ['container'], label };
    const events = await docker.getEvents({ filters: JSON.stringify(filters) });
    events.once('data', (line: Buffer) => {
      const id: unknown = JSON.parse(line.toString('utf8').split('\n', 1)[0] ?? '{}').id;
      if (typeof id !== 'string') return;
      // If it fails it is tried again, and told, when the container has been made.
      this.#early = this.#start(docker.getContainer(id)).then(
        () => true,
        () => false,
      );
    });
    events.on('error', () => undefined);
    return () => {
      if ('destroy' in events && typeof events.destroy === 'function') events.destroy();
    };
  }

  /** Ends the relay and every connection. The container, if it goes on, has no way out then. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stream?.destroy();
    this.#door?.close();
    await this.#gate.close();
  }

  async #start(container: Docker.Container, becomesImage = false): Promise<void> {
    if (this.#folder === undefined) await putInto(container, this.#contents);
    const socket = this.#door ? [`${FOLDER}/${SOCKET}`] : [];
    const exec = await container.exec({
      Cmd: [`${FOLDER}/${RELAY}`, String(INSIDE.port), ...socket],
      User: RELAY_USER,
      AttachStdin: true,
      AttachStdout: true,
      AttachStderr: true,
      Tty: false,
    });
    const stream = await exec.start({ hijack: true, stdin: true });
    this.#stream = stream;
    const ready = Promise.withResolvers<void>();
    let listening = false;
    let said = '';
    const wire = new RelayWire({
      send: (bytes) => void stream.write(bytes),
      onReady: () => {
        listening = true;
        ready.resolve();
      },
      onConnection: (connection) => this.#gate.accept(connection),
      onBroken: (why) => stream.destroy(new Error(`the relay sent ${why}`)),
    });
    stream.on(
      'data',
      demultiplexer((kind, chunk) => {
        if (kind === 'out') wire.receive(chunk);
        // What an engine says in place of a program it can't start.
        if (!listening && said.length < 200) said += chunk.toString('utf8').slice(0, 200);
      }),
    );
    stream.on('error', () => stream.destroy());
    stream.on('end', () => stream.destroy());
    stream.on('close', () => {
      wire.close();
      ready.reject(new Error(said.trim() || 'the relay ended'));
      if (this.#stream !== stream) return;
      this.#stream = undefined;
      void this.#again(container, exec, becomesImage);
    });
    const timer = setTimeout(() => stream.destroy(new Error('the relay did not start')), READY_MS);
    await ready.promise.finally(() => clearTimeout(timer));
    // Beside what comes next: who looks at the variables does not need it.
    if (!becomesImage) void this.#trust(container).catch(() => undefined);
    this.#restarts = 0;
  }

  /** A container that is found again trusts the same key already, and somebody waits for it. */
  async #trust(container: Docker.Container): Promise<void> {
    if (this.#foundAgain) await sleep(LATER_MS, undefined, { ref: false });
    if (!this.#closed) await trust(container);
  }

  /** A relay that died is started again while its container runs; not one that made room for another window's. */
  async #again(container: Docker.Container, exec: Docker.Exec, becomesImage: boolean): Promise<void> {
    if (this.#closed || this.#restarts >= RESTARTS) return;
    this.#restarts++;
    await sleep(RESTART_MS, undefined, { ref: false });
    if ((await exitCode(exec)) === ENDED || this.#closed || this.#stream) return;
    // A container that has been stopped or removed refuses: then there is nothing to be let out.
    await this.#start(container, becomesImage).catch(() => undefined);
  }
}

/** Where the systems there are keep whom all programs trust. */
const STORES =
  '/etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem';
/** Added once, also where one of these files is another by a link; an image that can't be written to keeps its own. */
const TRUST = `for store in ${STORES}; do
  [ ! -f "$store" ] || grep -qF "$(sed -n 2p ${FOLDER}/ca.pem)" "$store" || cat ${FOLDER}/ca.pem >>"$store"
done`;

/** For programs that look at no variable, the session's authority goes into the system's own store. */
async function trust(container: Docker.Container): Promise<void> {
  const exec = await container.exec({ Cmd: ['sh', '-c', TRUST], User: '0:0' });
  const answer = await exec.start({ Detach: true });
  // An answer that nobody reads keeps its connection.
  answer.on('error', () => undefined).resume();
}

/** An engine that has much to do notices late that a program has ended. One that does not answer has ended all. */
async function exitCode(exec: Docker.Exec): Promise<number> {
  for (let tries = 0; tries < NOTICED_LATE; tries++) {
    const { Running, ExitCode } = await exec.inspect().catch(() => ({ Running: false, ExitCode: ENDED }));
    if (!Running && ExitCode !== null) return ExitCode;
    await sleep(RESTART_MS, undefined, { ref: false });
  }
  return ENDED;
}

const folderOf = (cacheFolder: string, id: SandboxId): string => join(cacheFolder, 'egress', id);

/** Removes what a container's way out left on the host. */
export const forgetWayOut = (cacheFolder: string, id: SandboxId): Promise<void> =>
  rm(folderOf(cacheFolder, id), { recursive: true, force: true });

/** What a sandbox's variables say is its proxy's token. */
function tokenIn(env: readonly string[]): string | undefined {
  const url = env.find((entry) => entry.startsWith('HTTPS_PROXY='))?.slice('HTTPS_PROXY='.length);
  return (url && URL.parse(url)?.password) || undefined;
}

interface Content {
  name: string;
  /** Permission bits. */
  mode: number;
  data: Buffer;
}

/** The relay and the certificates. Throws `SandboxUnavailable` if there is no relay for the engine's processor. */
async function contentsFor(gate: Gate, engine: Engine): Promise<Content[]> {
  const program = RELAY_PROGRAMS[engine.arch];
  if (!program)
    throw new SandboxUnavailable(
      'engine',
      `The engine runs on a processor (${engine.arch}) for which Drover has no relay, so its sandboxes would have no network; use an engine on amd64 or arm64.`,
    );
  return [
    { name: RELAY, mode: 0o755, data: Buffer.from(program, 'base64') },
    ...gate.files.map(({ path, content }) => ({ name: basename(path), mode: 0o644, data: Buffer.from(content) })),
  ];
}

/** In place of the mount, on an engine that does not see this machine's files. What stands there is replaced. */
async function putInto(container: Docker.Container, contents: readonly Content[]): Promise<void> {
  const { pack } = await import('tar-stream');
  const archive = pack();
  const inside = FOLDER.slice(1);
  const owner = Number(RELAY_USER.split(':')[0]);
  const place = { uid: owner, gid: owner };
  archive.entry({ name: `${inside}/`, type: 'directory', mode: 0o755, ...place });
  for (const { name, mode, data } of contents) archive.entry({ name: `${inside}/${name}`, mode, ...place }, data);
  archive.finalize();
  // The engine's client wants a stream of Node's own making.
  await container.putArchive(archive.pipe(new PassThrough()), { path: '/' });
}

/** The folder that is mounted. */
async function furnish(folder: string, contents: readonly Content[]): Promise<void> {
  // Other people of this machine have no business here; a user inside gets in past it, by the mount.
  await mkdir(join(folder, '..'), { recursive: true, mode: 0o700 });
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o755);
  for (const { name, mode, data } of contents) {
    // Put in place as a whole: a program that still runs can't be written to.
    const fresh = join(folder, `${name}.${process.pid}`);
    await writeFile(fresh, data);
    await chmod(fresh, mode);
    await rename(fresh, join(folder, name));
  }
}

/** A unix socket for the relay, where there are any and its path is not too long for one. */
async function openDoor(gate: Gate, path: string): Promise<Server | undefined> {
  if (process.platform !== 'linux' || Buffer.byteLength(path) > LONGEST_SOCKET) return undefined;
  await rm(path, { force: true });
  const server = createServer({ allowHalfOpen: true }, (socket) => gate.accept(socket));
  await new Promise<void>((resolve, reject) => {
    // Also later: where this process has no file left to open, a connection can't be taken, and that is all.
    server.on('error', reject);
    server.listen(path, resolve);
  });
  // Whoever is inside, whatever their number, may connect.
  await chmod(path, 0o666);
  server.unref();
  return server;
}
