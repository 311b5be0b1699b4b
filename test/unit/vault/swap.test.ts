import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isAllowed, isBound, parseAuthority, parseTarget } from '../../../src/vault/proxy/hosts.ts';
import { putBackSwaps, Swapper, swapAll } from '../../../src/vault/proxy/swap.ts';

const swap = (from: string, to: string) => ({ from: Buffer.from(from), to: Buffer.from(to) });

/** All that comes out when `text` goes in cut at these places. */
function inPieces(text: string, cuts: number[], swaps: ReturnType<typeof swap>[]): string {
  const swapper = new Swapper(swaps);
  const places = [0, ...cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b), text.length];
  const parts = places.slice(1).map((end, n) => swapper.push(Buffer.from(text.slice(places[n], end))));
  return Buffer.concat([...parts, swapper.end()]).toString();
}

describe('swapping in a stream', () => {
  it('gives the same however the bytes are cut', () => {
    const words = fc.constantFrom('secret', 'sec', 'ret', 'secsecret', 'x', 'se', 'other', 'oth');
    fc.assert(
      fc.property(fc.array(words), fc.array(fc.nat()), (parts, cuts) => {
        const text = parts.join('');
        const swaps = [swap('secret', '[1]'), swap('other', '[2]')];
        const whole = text.replaceAll('secret', '[1]').replaceAll('other', '[2]');
        expect(inPieces(text, cuts, swaps)).toBe(whole);
      }),
    );
  });

  it('takes the longer of two that begin at the same place', () => {
    expect(swapAll(Buffer.from('abcabcd'), [swap('abc', '1'), swap('abcd', '2')]).toString()).toBe('12');
  });

  it('holds back only what may be the beginning of something', () => {
    const swapper = new Swapper([swap('secret', '*')]);
    expect(swapper.push(Buffer.from('data: hello\n\n')).toString()).toBe('data: hello\n\n');
    expect(swapper.push(Buffer.from('a sec')).toString()).toBe('a ');
    expect(swapper.push(Buffer.from('ond')).toString()).toBe('second');
  });

  it('finds a value as JSON, URLs, base64 and hex write it, wherever it stands in them', () => {
    const value = 'p+q/r="\\ü-0123456789';
    const swaps = putBackSwaps(value, 'PLACEHOLDER');
    const cleaned = (text: string) => swapAll(Buffer.from(text), swaps).toString();
    expect(cleaned(JSON.stringify({ a: value }))).toBe('{"a":"PLACEHOLDER"}');
    expect(cleaned(`?a=${encodeURIComponent(value)}&b`)).toBe('?a=PLACEHOLDER&b');
    expect(cleaned(Buffer.from(value).toString('hex'))).toBe('PLACEHOLDER');
    for (const before of ['', 'a', 'ab', 'user:']) {
      const text = cleaned(Buffer.from(`${before}${value}!`).toString('base64'));
      expect(text).toContain('PLACEHOLDER');
      expect(Buffer.from(text, 'base64').includes(value)).toBe(false);
    }
  });
});

describe('hosts', () => {
  it.each([
    ['Example.TEST.', 'example.test'],
    ['127.1', '127.0.0.1'],
    ['0x7f000001', '127.0.0.1'],
    ['2130706433', '127.0.0.1'],
    ['[::1]', '::1'],
    ['[0:0::FFFF:7f00:1]', '::ffff:7f00:1'],
    ['１２７.0.0.1', '127.0.0.1'],
  ])('knows %s as %s', (text, host) => {
    expect(parseAuthority(text, 'https')?.host).toBe(host);
  });

  it.each(['', 'a b', 'me@host', 'host/path', 'host?x', 'host#x', 'a\\b', 'host:99999', ':80', '%zz'])(
    'takes %j for no host',
    (text) => {
      expect(parseAuthority(text, 'http')).toBeUndefined();
    },
  );

  it('takes no URL with a user in it, and none of another scheme', () => {
    expect(parseTarget('http://api.test@evil.test/')).toBeUndefined();
    expect(parseTarget('ftp://api.test/')).toBeUndefined();
    expect(parseTarget('https://api.test:8443/a?b')).toEqual({
      target: { scheme: 'https', host: 'api.test', port: 8443 },
      path: '/a?b',
    });
  });

  it('binds a credential to https, its hosts and its port alone', () => {
    const to = (scheme: 'http' | 'https', host: string, port: number) => ({ scheme, host, port });
    const bound = [{ host: '*.api.test' }, { host: 'one.test', port: 8443 }];
    expect(isBound(bound, to('https', 'a.api.test', 443))).toBe(true);
    expect(isBound(bound, to('https', 'one.test', 8443))).toBe(true);
    for (const [scheme, host, port] of [
      ['http', 'a.api.test', 443],
      ['https', 'a.api.test', 8443],
      ['https', 'api.test', 443],
      ['https', 'xapi.test', 443],
      ['https', 'a.api.test.evil.test', 443],
      ['https', 'one.test', 443],
    ] as const)
      expect(isBound(bound, to(scheme, host, port)), host).toBe(false);
    expect(isBound('any', to('https', 'whatever.test', 443))).toBe(true);
    expect(isBound('any', to('http', 'whatever.test', 80))).toBe(false);
  });

  it('lets a new environment reach package managers and nothing else', () => {
    const to = (host: string, port = 443) => ({ scheme: 'https' as const, host, port });
    expect(isAllowed(undefined, [], to('pypi.org'))).toBe(true);
    expect(isAllowed(undefined, [], to('pypi.org', 8080))).toBe(false);
    expect(isAllowed(undefined, [], to('example.test'))).toBe(false);
    expect(isAllowed(undefined, ['mcp.test'], to('mcp.test'))).toBe(false);
    const limited = { type: 'limited' as const, allowed_hosts: ['a.test:8443'], allow_mcp_servers: true };
    expect(isAllowed(limited, ['mcp.test'], to('mcp.test'))).toBe(true);
    expect(isAllowed(limited, [], to('a.test', 8443))).toBe(true);
    expect(isAllowed(limited, [], to('a.test'))).toBe(false);
    expect(isAllowed(limited, [], to('pypi.org'))).toBe(false);
  });
});
