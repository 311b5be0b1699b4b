import { execFileSync, spawnSync } from 'node:child_process';
import { createReadStream, existsSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { join } from 'node:path';
import { SessionAuthority } from '../../src/vault/proxy/authority.ts';
import { docker } from '../support/engine.ts';
import { makeFolder } from '../support/temp.ts';

const on = (domain: string, name: string): string => `${name}.${domain}`;
/** What the managers ask by themselves, and what an environment that allows packages lets them. */
export const HOST_NAMES = {
  apt: on('debian.org', 'deb'),
  gem: on('rubygems.org', 'index'),
  npm: on('npmjs.org', 'registry'),
  pip: 'pypi.org',
  pipFiles: on('pythonhosted.org', 'files'),
};

/** Debian with apt, pip and gem, whose apt trusts one repository that is not signed. */
export const MANAGERS = 'drover-managers:latest';

/** Whether this machine has the program that the image is made with. */
export const canMakeManagers = (): boolean =>
  spawnSync('sh', ['-c', 'command -v mmdebstrap'], { stdio: 'ignore' }).status === 0 && process.getuid?.() === 0;

/** From Debian's packages, in about a minute; kept on the engine for the next run. */
export function makeManagersImage(): void {
  if (docker('images', '--quiet', MANAGERS) !== '') return;
  const sources = `echo "deb [trusted=yes] http://${HOST_NAMES.apt}/demo ./" >"$1/etc/apt/sources.list"`;
  const lean = ['doc', 'man', 'locale'].map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`);
  const made = [
    ...['mmdebstrap', '--quiet', '--mode=root', '--variant=apt', '--include=python3-pip,ruby,ca-certificates'],
    ...[...lean, '--aptopt=Acquire::Languages "none"', `--customize-hook=${sources}`, 'bookworm', '-'],
    `deb http://${HOST_NAMES.apt}/debian bookworm main`,
  ];
  const quoted = made.map((word) => `'${word}'`).join(' ');
  execFileSync('sh', ['-c', `${quoted} | docker import -c 'ENV PATH=${PATH}' - ${MANAGERS}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: 600_000,
  });
}
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Makes what the registries serve, one folder for each host, with the managers' own programs: a package of two versions. */
const CONTENT = String.raw`
set -e
site() { mkdir -p "/site/$1"; cd "/site/$1"; }

site ${HOST_NAMES.apt}/demo
for version in 1.1 1.2; do
  mkdir -p /deb/DEBIAN /deb/usr/bin
  printf '#!/bin/sh\necho apt %s\n' $version >/deb/usr/bin/say-apt; chmod 755 /deb/usr/bin/say-apt
  printf 'Package: drover-demo\nVersion: %s\nArchitecture: all\nMaintainer: nobody\nDescription: demo\n' $version >/deb/DEBIAN/control
  deb=drover-demo_$version.deb
  dpkg-deb --root-owner-group --build /deb $deb >/dev/null
  { cat /deb/DEBIAN/control; printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' $deb $(stat -c %s $deb) $(sha256sum $deb | cut -d' ' -f1); } >>Packages
done
printf 'SHA256:\n %s %s Packages\n' $(sha256sum Packages | cut -d' ' -f1) $(stat -c %s Packages) >Release

site ${HOST_NAMES.gem}
mkdir -p gems bin info
for version in 1.1 1.2; do
  printf '#!/usr/bin/env ruby\nputs "gem %s"\n' $version >bin/say-gem; chmod 755 bin/say-gem
  printf 'Gem::Specification.new { |s| s.name = "drover-demo"; s.version = "%s"; s.summary = "demo"; s.authors = ["nobody"]; s.files = ["bin/say-gem"]; s.executables = ["say-gem"] }' $version >demo.gemspec
  gem build --silent demo.gemspec --output gems/drover-demo-$version.gem 2>/dev/null
done
gem generate_index --silent --directory . 2>/dev/null
echo --- >info/drover-demo
for version in 1.1 1.2; do echo "$version |checksum:$(sha256sum gems/drover-demo-$version.gem | cut -d' ' -f1)" >>info/drover-demo; done
echo demo >index.html

python3 - <<'END'
import base64, hashlib, io, json, os, tarfile, zipfile
VERSIONS = ('1.1', '1.2')
def put(path, data):
    os.makedirs(os.path.dirname('/site/' + path), exist_ok=True)
    open('/site/' + path, 'wb').write(data.encode() if isinstance(data, str) else data)
links = ''
for version in VERSIONS:
    name, about, wheel = f'drover_demo-{version}-py3-none-any.whl', f'drover_demo-{version}.dist-info', io.BytesIO()
    with zipfile.ZipFile(wheel, 'w') as archive:
        archive.writestr('drover_demo.py', f'print("pip {version}")\n')
        archive.writestr(f'{about}/METADATA', f'Metadata-Version: 2.1\nName: drover-demo\nVersion: {version}\n')
        archive.writestr(f'{about}/WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
        archive.writestr(f'{about}/RECORD', '')
    put(f'${HOST_NAMES.pipFiles}/{name}', wheel.getvalue())
    links += f'<a href="https://${HOST_NAMES.pipFiles}/{name}">{name}</a>\n'
put('${HOST_NAMES.pip}/simple/drover-demo/index.html', f'<!DOCTYPE html><html><body>{links}</body></html>')
npm = {'name': 'drover-demo', 'dist-tags': {'latest': '1.2.0'}, 'versions': {}}
for version in ('1.1.0', '1.2.0'):
    about, packed = {'name': 'drover-demo', 'version': version, 'bin': {'say-npm': 'say.js'}}, io.BytesIO()
    with tarfile.open(fileobj=packed, mode='w:gz') as archive:
        for name, text in (('package.json', json.dumps(about)), ('say.js', f'#!/usr/bin/env node\nconsole.log("npm {version}");\n')):
            entry = tarfile.TarInfo('package/' + name)
            entry.size, entry.mode = len(text), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
    data = packed.getvalue()
    put(f'${HOST_NAMES.npm}/drover-demo/-/drover-demo-{version}.tgz', data)
    about['dist'] = {
        'tarball': f'https://${HOST_NAMES.npm}/drover-demo/-/drover-demo-{version}.tgz',
        'integrity': 'sha512-' + base64.b64encode(hashlib.sha512(data).digest()).decode(),
    }
    npm['versions'][version] = about
put('${HOST_NAMES.npm}/drover-demo/index.html', json.dumps(npm))
END
`;

export interface Registries {
  /** Who vouches for the hosts, in PEM. */
  certificate: string;
  /** What they were asked for, as `host path`, in order. */
  asked: string[];
  close(): Promise<void>;
}

/**
 * The registries under their own names, at the usual ports of one loopback address: each has the package `drover-demo`
 * in two versions and no other.
 */
export async function openRegistries(address: string): Promise<Registries> {
  const folder = await makeFolder('drover-registries-');
  const mount = `${folder}:/site`;
  docker('run', '--rm', '--network', 'none', '--volume', mount, MANAGERS, 'bash', '-c', CONTENT);
  const authority = new SessionAuthority();
  const asked: string[] = [];
  const answer: RequestListener = (request, response) => {
    const host = request.headers.host ?? '';
    const { pathname } = new URL(request.url ?? '/', `http://${host}`);
    asked.push(`${host} ${pathname}`);
    const at = join(folder, host, decodeURIComponent(pathname));
    const file = existsSync(at) && statSync(at).isDirectory() ? join(at, 'index.html') : at;
    if (!existsSync(file)) return void response.writeHead(404).end('there is no such thing\n');
    response.writeHead(200, file.endsWith('.html') ? { 'content-type': TYPES[host] ?? 'text/html' } : {});
    createReadStream(file).pipe(response);
  };
  const servers = [
    createServer(answer).listen(80, address),
    createSecureServer({ SNICallback: (name, done) => done(null, authority.contextFor(name)) }, answer).listen(
      443,
      address,
    ),
  ];
  await Promise.all(
    servers.map((server) => server.listening || new Promise((ready) => server.once('listening', ready))),
  );
  return {
    certificate: authority.certificate,
    asked,
    close: async () => {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const TYPES: Readonly<Record<string, string>> = { [HOST_NAMES.npm]: 'application/json' };
