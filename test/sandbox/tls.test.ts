import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer, type Server } from 'node:tls';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { ensureTinyImage } from '../../scripts/image.mjs';
import { describeWith, docker, engineAvailable } from '../support/engine.ts';
import { makeFolder } from '../support/temp.ts';
import { environmentOf, makeImages, makeRig, type Rig, sh, TINY, textOf } from './rig.ts';

const image = { type: 'image' as const, image: TINY };

describeWith(await engineAvailable(), 'an engine that speaks TLS', () => {
  let folder: string;
  let server: Server;
  let host: string;
  let rig: Rig | undefined;
  const sockets = new Set<Socket>();
  const at = (...names: string[]) => join(folder, ...names);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });

  /** A folder with an authority and a client's certificate by it, as the docker program wants them. */
  const authority = async (name: string) => {
    await mkdir(at(name));
    const p256 = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    const [ca, caKey, key, cert] = ['ca.pem', 'ca-key.pem', 'key.pem', 'cert.pem'].map((file) => at(name, file));
    const files = { ca: ca ?? '', caKey: caKey ?? '', key: key ?? '', cert: cert ?? '' };
    openssl('req', '-x509', ...p256, '-subj', `/CN=${name}`, '-keyout', files.caKey, '-out', files.ca);
    const sign = ['-CA', files.ca, '-CAkey', files.caKey];
    openssl('req', '-x509', ...p256, '-subj', '/CN=client', ...sign, '-keyout', files.key, '-out', files.cert);
    return { ...files, sign, p256 };
  };

  beforeAll(async () => {
    await makeImages(ensureTinyImage);
    folder = await makeFolder('drover-tls-');
    const { ca, sign, p256 } = await authority('right');
    await authority('wrong');
    const names = ['-addext', 'subjectAltName=IP:127.0.0.1'];
    openssl(
      'req',
      '-x509',
      ...p256,
      '-subj',
      '/CN=engine',
      ...names,
      ...sign,
      '-keyout',
      'key.pem',
      '-out',
      'cert.pem',
    );
    const [key, cert, trusted] = await Promise.all([at('key.pem'), at('cert.pem'), ca].map((file) => readFile(file)));
    // The real engine, behind what asks for a certificate as it would itself.
    server = createServer({ key, cert, ca: trusted, requestCert: true, rejectUnauthorized: true }, (client) => {
      const engine = connect('/var/run/docker.sock');
      for (const socket of [client, engine]) {
        sockets.add(socket);
        socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
      }
      client.pipe(engine).pipe(client);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const bound = server.address();
    host = `tcp://127.0.0.1:${typeof bound === 'object' ? bound?.port : ''}`;
  });
  afterEach(async () => {
    await rig?.clear();
    rig = undefined;
  });
  afterAll(async () => {
    server.close();
    for (const socket of sockets) socket.destroy();
    await rm(folder, { recursive: true, force: true });
  });

  const base = { PATH: process.env.PATH, HOME: process.env.HOME };
  const named = (certificates: string) => ({
    ...base,
    DOCKER_HOST: host,
    DOCKER_TLS_VERIFY: '1',
    DOCKER_CERT_PATH: at(certificates),
  });
  const diagnosed = async (env: NodeJS.ProcessEnv) => {
    rig = await makeRig({ env });
    return (await rig.provider.diagnose(environmentOf(image))).text;
  };

  it('is found by the current docker context, and serves, also for a devcontainer', async () => {
    const env = { ...base, DOCKER_CONFIG: at('config') };
    const files = ['ca', 'cert', 'key'].map((name) => `${name}=${at('right', `${name}.pem`)}`);
    execFileSync('docker', ['context', 'create', 'lab', '--docker', [`host=${host}`, ...files].join(',')], {
      env,
      stdio: 'ignore',
    });
    execFileSync('docker', ['context', 'use', 'lab'], { env, stdio: 'ignore' });
    rig = await makeRig({ env });
    await rig.put('a.txt', 'a\n');
    const sandbox = await rig.provider.acquire(rig.owner(image));
    expect(rig.provider.serving()).toMatch(
      /^Docker \S+ at tcp:\/\/127\.0\.0\.1:\d+ \(from the docker context "lab"\)$/,
    );
    const result = await sh(sandbox, 'cat a.txt; cat; echo b >b.txt', { stdin: new TextEncoder().encode('given\n') });
    expect(textOf(result.stdout)).toBe('a\ngiven\n');
    expect(await readFile(join(rig.workspace, 'b.txt'), 'utf8')).toBe('b\n');
    await rig.provider.remove(rig.owner(image), 'done');
    await rig.put('.devcontainer.json', JSON.stringify({ image: TINY, postCreateCommand: 'echo made >made.txt' }));
    const made = await rig.provider.acquire(rig.owner({ type: 'devcontainer' }));
    expect(textOf((await sh(made, 'cat made.txt')).stdout)).toBe('made\n');
    await rig.provider.remove(rig.owner(image), 'done');
    expect(docker('ps', '--all', '--quiet', '--filter', `label=drover.workspace=${rig.workspace}`)).toBe('');
  });

  it('is found by DOCKER_HOST with DOCKER_TLS_VERIFY and DOCKER_CERT_PATH', async () => {
    expect(await diagnosed(named('right'))).toMatch(/by Docker \S+ at tcp:.* \(from DOCKER_HOST\)/);
  });

  it('is not used if its certificate is not trusted, and that is said', async () => {
    expect(await diagnosed(named('wrong'))).toMatch(
      /showed a certificate that is not trusted \(.*\): see that \S+wrong\/ca\.pem is of the authority that signed it/,
    );
  });

  it('that does not want the client’s certificate, or gets none, is told from one that is not there', async () => {
    await mkdir(at('stranger'));
    await copyFile(at('right', 'ca.pem'), at('stranger', 'ca.pem'));
    expect(await diagnosed(named('stranger'))).toMatch(/ended the TLS connection \(.*\): see that .* in \S+stranger/);
  });

  it('is not verified where the context says so', async () => {
    const env = { ...base, DOCKER_CONFIG: at('careless') };
    const files = ['cert', 'key'].map((name) => `${name}=${at('right', `${name}.pem`)}`);
    const options = [`host=${host}`, 'skip-tls-verify=true', ...files].join(',');
    execFileSync('docker', ['context', 'create', 'careless', '--docker', options], { env, stdio: 'ignore' });
    await writeFile(at('careless', 'config.json'), JSON.stringify({ currentContext: 'careless' }));
    expect(await diagnosed(env)).toMatch(/by Docker \S+ at tcp:.* \(from the docker context "careless"\)/);
  });
});
