// Makes container images out of this machine's own programs, for machines that can't pull one. Linux only.
// No dependencies, Node 20 or newer. From the command line: node scripts/image.mjs [sample|tiny] [--force]

import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const COREUTILS = `[ arch base64 basename cat chmod chown cksum comm cp csplit cut date dd df dirname du echo env expand
  expr factor false fmt fold groups head hostid id install join link ln ls md5sum mkdir mkfifo mknod mktemp mv nice nl
  nohup nproc numfmt od paste pathchk pr printenv printf pwd readlink realpath rm rmdir seq sha1sum sha256sum sha512sum
  shred shuf sleep sort split stat stdbuf stty sum sync tac tail tee test timeout touch tr true truncate tsort tty uname
  unexpand uniq unlink users wc who whoami yes`.split(/\s+/);
const SEARCH = ['grep', 'egrep', 'find', 'xargs', 'sed'];
const MORE = ['tar', 'gzip', 'diff', 'patch', 'ps', 'setsid', 'awk', 'git', 'which'];
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * The image of the bundled sample: a shell, the usual tools, git and Node 24. About 200 MB, made once in a few seconds.
 * @param {{ log?: (line: string) => void, force?: boolean }} options
 * @returns {Promise<{ ok: boolean, image: string, why: string }>}
 */
export async function ensureSampleImage({ log = console.error, force = false } = {}) {
  return await ensureImage('drover-sample:latest', { log, force }, (root) => {
    addPrograms(root, ['bash', ...COREUTILS, ...SEARCH, ...MORE]);
    addGit(root);
    addProgram(root, node24(), '/usr/local/bin/node');
    addUsers(root);
    for (const file of ['/etc/ssl/certs/ca-certificates.crt', '/etc/os-release']) addFile(root, file);
  });
}

/**
 * A small image for tests: bash, coreutils, grep, sed, find; about 10 MB.
 * @param {{ log?: (line: string) => void, force?: boolean }} options
 * @returns {Promise<{ ok: boolean, image: string, why: string }>}
 */
export async function ensureTinyImage({ log = console.error, force = false } = {}) {
  return await ensureImage('drover-tiny:latest', { log, force }, (root) => {
    addPrograms(root, ['bash', ...COREUTILS, ...SEARCH]);
    addUsers(root);
  });
}

/**
 * The same with ripgrep, which fewer images have.
 * @param {{ log?: (line: string) => void, force?: boolean }} options
 * @returns {Promise<{ ok: boolean, image: string, why: string }>}
 */
export async function ensureSearchImage({ log = console.error, force = false } = {}) {
  const image = 'drover-search:latest';
  if (!which('rg')) return { ok: false, image, why: `ripgrep is not installed here, so ${image} can't be made.` };
  return await ensureImage(image, { log, force }, (root) => {
    addPrograms(root, ['bash', ...COREUTILS, ...SEARCH, 'rg']);
    addUsers(root);
  });
}

/**
 * The image of the security tests: what the sample's has, and curl, openssl and npm: programs an attacker would use,
 * and a person. About 220 MB.
 * @param {{ log?: (line: string) => void, force?: boolean }} options
 * @returns {Promise<{ ok: boolean, image: string, why: string }>}
 */
export async function ensureSecurityImage({ log = console.error, force = false } = {}) {
  return await ensureImage('drover-security:latest', { log, force }, (root) => {
    addPrograms(root, ['bash', ...COREUTILS, ...SEARCH, ...MORE, 'curl', 'openssl', 'getent']);
    addGit(root);
    addProgram(root, node24(), '/usr/local/bin/node');
    addNpm(root);
    addUsers(root);
    for (const file of ['/etc/ssl/certs/ca-certificates.crt', '/etc/os-release', '/etc/nsswitch.conf'])
      addFile(root, file);
    // Names are looked up by libraries that programs load while they run.
    for (const name of ['libnss_dns.so.2', 'libnss_files.so.2', 'libresolv.so.2'])
      for (const folder of ['/lib/x86_64-linux-gnu', '/lib/aarch64-linux-gnu']) addFile(root, join(folder, name));
  });
}

async function ensureImage(image, { log, force }, fill) {
  const no = (why) => ({ ok: false, image, why });
  if (!force && docker('image', 'inspect', image).status === 0) return { ok: true, image, why: '' };
  if (process.platform !== 'linux')
    return no(`The image ${image} can only be made from a Linux machine's own programs; pull an image instead.`);
  log(`Making the image ${image} from this machine's own programs; nothing is downloaded.`);
  const root = mkdtempSync(join(tmpdir(), 'drover-image-'));
  try {
    chmodSync(root, 0o755);
    addSkeleton(root);
    fill(root);
    const problem = await importFolder(root, image);
    return problem ? no(`docker could not import ${image}: ${problem}`) : { ok: true, image, why: '' };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const docker = (...args) => spawnSync('docker', args, { encoding: 'utf8', timeout: 60_000 });

/** `tar | docker import`, files owned by root. Resolves to what went wrong, or undefined. */
async function importFolder(root, image) {
  const changes = [`ENV PATH=${PATH}`, 'ENV LANG=C.UTF-8', 'WORKDIR /workspace', 'CMD ["/bin/sh"]'];
  const tar = spawn('tar', ['-C', root, '--owner=0', '--group=0', '-c', '.'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const load = spawn('docker', ['import', ...changes.flatMap((change) => ['-c', change]), '-', image], {
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  // If docker ends early, that is told by its exit code, not by a broken pipe.
  load.stdin.on('error', () => tar.kill());
  tar.stdout.pipe(load.stdin);
  let complaint = '';
  load.stderr.on('data', (chunk) => {
    complaint += chunk;
  });
  const [packed, loaded] = await Promise.all([exitOf(tar), exitOf(load)]);
  return packed === 0 && loaded === 0
    ? undefined
    : complaint.trim() || `tar ended with ${packed}, docker with ${loaded}`;
}

const exitOf = (child) =>
  new Promise((resolve) => {
    child.on('error', (error) => resolve(error.message));
    child.on('close', resolve);
  });

function addSkeleton(root) {
  for (const folder of [
    'usr/bin',
    'usr/sbin',
    'usr/lib',
    'usr/lib64',
    'usr/local/bin',
    'etc',
    'root',
    'tmp',
    'workspace',
  ])
    mkdirSync(join(root, folder), { recursive: true });
  for (const folder of ['bin', 'sbin', 'lib', 'lib64']) symlinkSync(`usr/${folder}`, join(root, folder));
  chmodSync(join(root, 'tmp'), 0o1777);
  chmodSync(join(root, 'workspace'), 0o777);
  symlinkSync('bash', join(root, 'usr/bin/sh'));
}

function addUsers(root) {
  writeFileSync(
    join(root, 'etc/passwd'),
    'root:x:0:0:root:/root:/bin/bash\ndev:x:1000:1000:dev:/home/dev:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n',
  );
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\ndev:x:1000:\nnogroup:x:65534:\n');
  // The tar makes root the owner of everything, and dev must be able to write to its own home.
  const home = join(root, 'home/dev');
  mkdirSync(home, { recursive: true });
  chmodSync(home, 0o777);
}

const which = (program) => {
  const found = spawnSync('sh', ['-c', `command -v -- "${program}"`], { encoding: 'utf8', env: { PATH } });
  return found.stdout.trim();
};

/** Programs this machine does not have are left out. */
function addPrograms(root, names) {
  for (const name of names) {
    // Of what the shell has built in `which` knows only the name.
    const found = which(name);
    const path = found.startsWith('/') ? found : `/usr/bin/${name}`;
    if (path.startsWith('/') && existsSync(path)) addProgram(root, path, `/usr/bin/${name}`);
  }
}

/** Copies a program, links resolved, and the libraries it is linked against. */
function addProgram(root, from, to) {
  const target = inside(root, to);
  if (!existsSync(target)) cpSync(realpathSync(from), target);
  const linked = spawnSync('ldd', [from], { encoding: 'utf8' });
  if (linked.status !== 0) return;
  for (const [library] of linked.stdout.matchAll(/\/[^\s()]+/g)) addFile(root, library);
}

function addFile(root, path) {
  if (!existsSync(path)) return;
  const target = inside(root, path);
  if (existsSync(target)) return;
  mkdirSync(dirname(target), { recursive: true });
  cpSync(realpathSync(path), target);
}

/** `/lib/x` is kept as `/usr/lib/x`: in the image /bin, /sbin, /lib and /lib64 are links into /usr. */
const inside = (root, path) => join(root, path.replace(/^\/(bin|sbin|lib|lib64)\//, '/usr/$1/'));

/** Git's own helper programs and templates; most of them are links to git itself. */
function addGit(root) {
  const core = spawnSync('git', ['--exec-path'], { encoding: 'utf8' }).stdout?.trim();
  if (!core || !existsSync(core)) return;
  const folder = inside(root, core);
  mkdirSync(folder, { recursive: true });
  spawnSync('cp', ['-a', `${core}/.`, folder]);
  for (const helper of ['git-remote-http']) {
    const path = join(core, helper);
    if (existsSync(path)) addProgram(root, path, path);
  }
  if (existsSync('/usr/share/git-core'))
    cpSync('/usr/share/git-core', join(root, 'usr/share/git-core'), { recursive: true });
}

/** npm is JavaScript: it runs on any Node. */
function addNpm(root) {
  const npm = which('npm');
  if (!npm.startsWith('/')) return;
  const folder = dirname(dirname(realpathSync(npm)));
  cpSync(folder, join(root, 'usr/lib/node_modules/npm'), { recursive: true });
  symlinkSync('/usr/lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm'));
}

/** The real Node 24 binary: the one installed with this project, or else the one that runs this script. */
function node24() {
  const own = fileURLToPath(new URL('../node_modules/.bin/node', import.meta.url));
  return realpathSync(existsSync(own) ? own : process.execPath);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const ensure = process.argv.includes('tiny') ? ensureTinyImage : ensureSampleImage;
  const made = await ensure({ log: console.error, force: process.argv.includes('--force') });
  console.log(made.ok ? made.image : made.why);
  process.exitCode = made.ok ? 0 : 1;
}
