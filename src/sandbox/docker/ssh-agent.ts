import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { Agent, type ClientRequestArgs } from 'node:http';
import { Duplex } from 'node:stream';

/** Seconds for a connection to be made. Nobody can be asked for a password: keys or an agent have to do. */
const CONNECT_S = 10;
/** Characters of what ssh said, for when it fails. */
const SAID_MAX = 400;

/**
 * Connections to an engine through the machine's own `ssh`, as the docker program makes them: so that a person's
 * configuration, keys, agent and known hosts all count. `host` is `ssh://[user@]host[:port]`.
 */
export function sshAgent(host: string, env: NodeJS.ProcessEnv): Agent {
  const argv = sshArguments(host);
  return new (class extends Agent {
    override createConnection(
      _options: ClientRequestArgs,
      done?: (error: Error | null, stream: Duplex) => void,
    ): Duplex {
      const connection = new Dialled(spawn('ssh', argv, { env, stdio: 'pipe' }));
      done?.(null, connection);
      return connection;
    }
  })({ keepAlive: false });
}

/** What `ssh` is started with. A host that begins with a dash would be an option. */
export function sshArguments(host: string): string[] {
  const { username, hostname, port } = new URL(host);
  return [
    ...['-o', 'BatchMode=yes', '-o', `ConnectTimeout=${CONNECT_S}`],
    ...(username ? ['-l', decodeURIComponent(username)] : []),
    ...(port ? ['-p', port] : []),
    ...['--', hostname.replace(/^\[|\]$/g, ''), 'docker', 'system', 'dial-stdio'],
  ];
}

/** A program's input and output as one connection. */
class Dialled extends Duplex {
  readonly #child: ChildProcessWithoutNullStreams;

  constructor(child: ChildProcessWithoutNullStreams) {
    super({ allowHalfOpen: true });
    this.#child = child;
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      said = (said + chunk).slice(-SAID_MAX);
    });
    child.stdout.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) child.stdout.pause();
    });
    child.stdin.on('error', () => {});
    child.on('error', (error) => this.destroy(new Error(`ssh could not be started: ${error.message}`)));
    child.on('close', (code) => {
      if (code) this.destroy(new Error(said.trim() || `ssh ended with code ${code}`));
      else this.push(null);
    });
  }

  override _read(): void {
    this.#child.stdout.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.#child.stdin.write(chunk)) done();
    else this.#child.stdin.once('drain', () => done());
  }

  override _final(done: () => void): void {
    this.#child.stdin.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#child.kill();
    done(error);
  }

  // What Node's HTTP client sets on a socket has no meaning for a program.
  setKeepAlive(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setTimeout(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}
