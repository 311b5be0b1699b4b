import { createHash } from 'node:crypto';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WireReader } from '../../../src/sandbox/channel-wire.ts';
import { Collector } from '../../../src/sandbox/collect.ts';
import { demultiplexer } from '../../../src/sandbox/docker/demultiplex.ts';
import { readConfig } from '../../../src/sandbox/docker/devcontainer-config.ts';
import { harden } from '../../../src/sandbox/docker/devcontainer-harden.ts';
import { engineEndpoints, isLocal } from '../../../src/sandbox/docker/endpoint.ts';
import { makeFolder } from '../../support/temp.ts';

/** As a devcontainer.json writes it. */
const WORKSPACE = `\${localWorkspaceFolder}`;

let folder: string;
beforeEach(async () => {
  folder = await makeFolder('drover-parts-');
});
afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe('finding the engine', () => {
  it('takes DOCKER_HOST and nothing else if it is set', () => {
    expect(engineEndpoints({ DOCKER_HOST: 'tcp://127.0.0.1:2375', HOME: folder })).toEqual([
      { host: 'tcp://127.0.0.1:2375', from: 'DOCKER_HOST' },
    ]);
  });

  it('takes the current docker context', async () => {
    const meta = join(folder, '.docker/contexts/meta', createHash('sha256').update('colima').digest('hex'));
    await mkdir(meta, { recursive: true });
    const docker = { Host: `unix://${folder}/.colima/docker.sock` };
    await writeFile(join(meta, 'meta.json'), JSON.stringify({ Name: 'colima', Endpoints: { docker } }));
    await writeFile(join(folder, '.docker/config.json'), JSON.stringify({ currentContext: 'colima' }));
    expect(engineEndpoints({ HOME: folder })).toEqual([{ host: docker.Host, from: 'the docker context "colima"' }]);
    expect(engineEndpoints({ HOME: folder, DOCKER_CONTEXT: 'default' })[0]?.from).not.toContain('colima');
  });

  it('knows an engine on another machine', () => {
    expect(
      ['unix:///x.sock', 'npipe:////./pipe/x', 'tcp://127.0.0.1:1', 'tcp://localhost:1'].filter(isLocal),
    ).toHaveLength(4);
    expect(['ssh://me@far', 'tcp://10.0.0.7:2375', 'nonsense'].filter(isLocal)).toEqual([]);
  });
});

describe('what comes from the runner', () => {
  const call = { base: '/b', executionId: 'e', nonce: 'N0NCE', head: 10, tail: 10 };
  const feed = (chunks: string[], err = '') => {
    const shown: string[] = [];
    const collector = new Collector(call, (chunk) => shown.push(Buffer.from(chunk).toString()));
    if (err) collector.add('err', Buffer.from(err));
    for (const chunk of chunks) collector.add('out', Buffer.from(chunk));
    return { collector, shown: shown.join('') };
  };

  it('is complete with the trailer, however it is cut into pieces', () => {
    const sent = 'hello\nN0NCE exited 3 10.00 10.25 6 6 0 0 0 0\n';
    for (let at = 0; at <= sent.length; at++) {
      const { collector, shown } = feed([sent.slice(0, at), sent.slice(at)]);
      expect(collector.complete).toBe(true);
      expect(shown).toBe('hello\n');
      if (typeof collector.last !== 'object') throw new Error('no trailer');
      expect(collector.result(collector.last)).toMatchObject({ exitCode: 3, durationMs: 250, cutBytes: 0 });
    }
  });

  it('is not complete before the errors it announced are there', () => {
    const { collector } = feed(['N0NCE exited 0 1 1 0 0 0 4 4 0\n']);
    expect(collector.complete).toBe(false);
    expect(collector.add('err', Buffer.from('oops'))).toBe(true);
  });

  it('takes output that merely looks like a trailer as output', () => {
    const { collector, shown } = feed(['N0NCE of your business\nmore\n', 'N0NCE exited 0 1 1 28 28 0 0 0 0\n']);
    expect(shown).toBe('N0NCE of your business\nmore\n');
    expect(collector.complete).toBe(true);
  });

  it('is split from the engine’s frames, however they are cut', () => {
    const frame = (stream: number, text: string) => {
      const header = Buffer.alloc(8);
      header[0] = stream;
      header.writeUInt32BE(text.length, 4);
      return Buffer.concat([header, Buffer.from(text)]);
    };
    const sent = Buffer.concat([frame(1, 'out'), frame(2, 'err'), frame(1, ''), frame(1, 'more')]);
    for (let size = 1; size <= sent.length; size++) {
      const got = { out: '', err: '' };
      const take = demultiplexer((stream, chunk) => {
        got[stream] += chunk.toString();
      });
      for (let at = 0; at < sent.length; at += size) take(sent.subarray(at, at + size));
      expect(got).toEqual({ out: 'outmore', err: 'err' });
    }
  });
});

describe('what comes over a runner’s connection', () => {
  const said = [
    'O exec_a end1',
    'out\nmarkexec_b exited 0 1 2\nput',
    'end1',
    'D exec_a exited 0 3 4',
    'markexec_c exited 7 5 6',
  ];
  const whole = Buffer.from(`${said[0]}\n${said[1]}${said.slice(2).join('\n')}\n`);

  it('has the end of one command between the bytes of another, however it is cut into pieces', () => {
    for (let size = 1; size <= whole.length; size++) {
      const heard: string[] = [];
      let bytes = '';
      const reader = new WireReader('mark', {
        line: (words) => {
          heard.push(words.join(' '));
          return words[0] === 'O' ? words[2] : undefined;
        },
        bytes: (chunk) => {
          bytes += chunk;
        },
        bytesEnd: () => heard.push(bytes),
      });
      for (let at = 0; at < whole.length; at += size) reader.push(whole.subarray(at, at + size));
      expect(heard).toEqual([
        'O exec_a end1',
        'D exec_b exited 0 1 2',
        'out\nput',
        'D exec_a exited 0 3 4',
        'D exec_c exited 7 5 6',
      ]);
    }
  });
});

describe('a devcontainer.json', () => {
  const read = async (text: string) => {
    await writeFile(join(folder, 'devcontainer.json'), text);
    return readConfig(join(folder, 'devcontainer.json'), '.devcontainer/devcontainer.json');
  };

  it.each([
    ['{\n "image": "a",\n "name": "x\n}', /line 3: a string is not closed/],
    ['{\n "image": "a"', /line 2: a closing brace is missing/],
    ['{\n "image" "a"\n}', /line 2: a colon is missing/],
    ['{\n "image": "a",\n "mounts": {}\n}', /line 3: "mounts" is not as expected/],
    ['{\n "name": "x"\n}', /line 1: it names no "image"/],
    ['[]', /line 1: /],
    ['', /line 1: /],
  ])('that is broken (%j) is answered with the line', async (text, words) => {
    await expect(read(text)).rejects.toThrow(words);
    await expect(read(text)).rejects.toThrow(/^\.devcontainer\/devcontainer\.json, line/);
  });

  it('may have comments, trailing commas and a BOM', async () => {
    expect(await read('\uFEFF{ // c\n "image": "a", /* d */ }')).toMatchObject({ image: 'a' });
  });

  const hardened = (config: Record<string, unknown>) =>
    harden({
      config: { image: 'a', ...config },
      file: join(folder, '.devcontainer/devcontainer.json'),
      folder,
      guarded: [
        { path: '.vscode', how: 'read_only' },
        { path: '.git', how: 'anchor' },
        { path: '.git/hooks', how: 'read_only' },
      ],
      planAt: (target) => ({
        labels: { target },
        env: {},
        mounts: [{ type: 'bind', source: folder, target, readOnly: false }],
        network: undefined,
        limits: { memory_mib: 512 },
        keepUserId: false,
        copiesUp: false,
      }),
    });
  /** What is left of the file's own arguments: ours come after them. */
  const kept = (args: string[]) => {
    const all = hardened({ runArgs: args }).config.runArgs ?? [];
    return all.slice(0, all.indexOf('--cap-drop=ALL'));
  };

  it('loses every way out of the sandbox', () => {
    for (const args of [
      ['--privileged'],
      ['--cap-add=SYS_ADMIN'],
      ['--cap-add', 'ALL'],
      ['--security-opt', 'seccomp=unconfined'],
      ['--network=host'],
      ['--net', 'host'],
      ['--network', 'container:other'],
      ['--pid=host'],
      ['--device=/dev/sda'],
      ['-v', '/:/host'],
      ['--volume=/var/run/docker.sock:/var/run/docker.sock'],
      ['-v', '~/.ssh:/root/.ssh'],
      ['-v', `\${localEnv:HOME}/.aws:/aws`],
      ['--mount', 'type=bind,source=/etc,target=/e'],
      ['--mount=type=bind,src=/etc,dst=/e'],
      ['--env-file', '/etc/environment'],
      ['--unknown-option'],
      ['-v', `${folder}/../other:/x`],
      ['-v', `${folder}:/again`],
      ['-v', `${folder}/.git:/again`],
      ['-v', `${folder}/.vscode/deeper:/again`],
    ])
      expect([args, kept(args)]).toEqual([args, []]);
  });

  it('keeps what opens nothing', () => {
    for (const args of [
      ['--hostname', 'box'],
      ['--shm-size=1g'],
      ['-e', 'A=b'],
      ['-v', 'cache:/cache'],
      ['-v', `${folder}/data:/data`],
      ['--mount', 'type=volume,source=cache,target=/c'],
      ['--network', 'mine'],
    ])
      expect([args, kept(args)]).toEqual([args, args]);
  });

  it('sees through a link that leads out of the folder', async () => {
    await symlink('/etc', join(folder, 'inner'));
    const mount = `type=bind,source=${WORKSPACE}/inner,target=/x`;
    expect(hardened({ mounts: [mount] }).config.mounts).toEqual([]);
    const fine = `type=bind,source=${WORKSPACE}/data,target=/x`;
    expect(hardened({ mounts: [fine] }).config.mounts).toEqual([fine]);
  });

  it('gets our own restrictions and limits whatever it says', () => {
    const { config, leftOut } = hardened({ capAdd: ['SYS_ADMIN'], privileged: true, init: false });
    expect(config).toMatchObject({ init: true });
    expect(config).not.toHaveProperty('capAdd');
    expect(config.runArgs).toEqual(
      expect.arrayContaining(['--cap-drop=ALL', '--security-opt=no-new-privileges', '--memory=512m']),
    );
    expect(leftOut).toEqual(['privileged', 'capAdd']);
  });

  it('does not build from files outside the folder', () => {
    expect(() => hardened({ build: { dockerfile: 'Dockerfile', context: '../..' } })).toThrow(
      /lies outside this folder/,
    );
    expect(() => hardened({ build: { dockerfile: 'Dockerfile', context: '..' } })).not.toThrow();
  });
});
