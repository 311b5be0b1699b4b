import { describe, expect, it } from 'vitest';
import { environmentProblems } from '../../../src/protocol/environment-rules.ts';

const fields = (value: unknown, taken: string[] = []) =>
  environmentProblems(value, taken)
    .map(({ field }) => field)
    .sort();

describe('a definition of an environment', () => {
  it('is taken when it says what it can say', () => {
    const whole = {
      name: 'Node',
      description: 'with tools',
      config: {
        type: 'image',
        image: 'registry.example.test:5000/node:24@sha256:abc',
        packages: { apt: ['ripgrep'], npm: ['typescript@5', '@scope/pkg'], pip: ['requests==2.0'] },
        networking: {
          type: 'limited',
          allowed_hosts: ['api.example.test', '*.example.test'],
          allow_package_managers: true,
        },
      },
      workspace: 'isolated',
      lifetime: 'call',
      limits: { memory_mib: 512, cpus: 1.5, pids: 100 },
    };
    expect(environmentProblems(whole, ['Other'])).toEqual([]);
    for (const config of [
      { type: 'devcontainer', path: '.devcontainer/a/devcontainer.json' },
      { type: 'os' },
      { type: 'host' },
    ])
      expect(environmentProblems({ name: 'x', config }, [])).toEqual([]);
  });

  it('is told of every field that is wrong, not of the first alone', () => {
    const wrong = {
      name: ' ',
      config: { type: 'image', image: '', packages: { npm: [''], apk: ['x'] } },
      limits: { memory_mib: -1, cpus: 'two', gpus: 1 },
      lifetime: 'for ever',
    };
    expect(fields(wrong)).toEqual(
      [
        'config.image',
        'config.packages.apk',
        'config.packages.npm.0',
        'lifetime',
        'limits.cpus',
        'limits.gpus',
        'limits.memory_mib',
      ].sort(),
    );
    expect(fields({ ...wrong, config: { type: 'os' }, limits: {}, lifetime: 'call' })).toEqual(['name']);
    expect(fields('nothing')).toEqual(['']);
    expect(fields({ name: 'x', config: { type: 'cloud' } })).toEqual(['config.type']);
  });

  it('can not have the name of another one', () => {
    expect(fields({ name: 'os sandbox', config: { type: 'os' } }, ['OS sandbox'])).toEqual(['name']);
  });

  it('has packages only where they are installed, and only with a way to them', () => {
    const packages = { npm: ['x'] };
    for (const type of ['os', 'host', 'devcontainer'])
      expect(fields({ name: 'x', config: { type, packages } })).toEqual(['config.packages']);
    const image = (networking: unknown) => ({ name: 'x', config: { type: 'image', image: 'i', packages, networking } });
    expect(fields(image({ type: 'none' }))).toEqual(['config.networking']);
    expect(fields(image({ type: 'limited', allowed_hosts: [] }))).toEqual(['config.networking.allow_package_managers']);
    expect(fields(image({ type: 'limited', allowed_hosts: ['npm.example.test'] }))).toEqual([]);
    expect(fields(image({ type: 'unrestricted' }))).toEqual([]);
    expect(
      fields({ name: 'x', config: { type: 'image', image: 'i', packages: { pip: ['--index-url=http://x'] } } }),
    ).toEqual(['config.packages.pip.0']);
  });

  it('promises nothing that its kind can not keep', () => {
    expect(fields({ name: 'x', config: { type: 'host' }, lifetime: 'call' })).toEqual(['lifetime']);
    expect(fields({ name: 'x', config: { type: 'host', networking: { type: 'none' } } })).toEqual([
      'config.networking',
    ]);
    expect(fields({ name: 'x', config: { type: 'os' }, limits: { pids: 5 } })).toEqual(['limits.pids']);
  });

  it('names hosts as names, and its devcontainer.json inside the folder', () => {
    const hosts = ['https://a.test', 'a.test:', 'a.test/x', '*', '*.', 'a..test', 'fine.test:8080', '10.0.0.1', ''];
    const limited = { type: 'limited', allowed_hosts: hosts.slice(0, 8) };
    expect(fields({ name: 'x', config: { type: 'os', networking: limited } })).toEqual(
      [0, 1, 2, 3, 4, 5].map((n) => `config.networking.allowed_hosts.${n}`),
    );
    for (const path of ['../x.json', '/etc/x.json', 'C:\\x.json', 'a/../../x.json', 'x.yaml'])
      expect(fields({ name: 'x', config: { type: 'devcontainer', path } })).toEqual(['config.path']);
  });
});
