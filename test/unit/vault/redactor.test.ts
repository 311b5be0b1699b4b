import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CredentialId, VaultId } from '../../../src/protocol/ids.ts';
import { type Finding, Redactor } from '../../../src/vault/redactor.ts';

const SECRET = 'tok_9f8E7d/6c+5B"4a zÿ!';

function knowing(...values: string[]) {
  const redactor = new Redactor();
  const name = { credential_id: CredentialId.parse('vcrd_1'), vault_id: VaultId.parse('vlt_1'), name: 'DEPLOY' };
  redactor.know('vcrd_1', name, values);
  const found: Finding[] = [];
  return { redactor, found, take: (finding: Finding) => void found.push(finding) };
}

const b64 = (text: string) => Buffer.from(text).toString('base64');

describe('a value of a vault', () => {
  const forms: [string, string, string][] = [
    ['as it is', SECRET, 'plain'],
    ['JSON-escaped', JSON.stringify(SECRET).slice(1, -1), 'json'],
    ['JSON inside JSON', JSON.stringify(JSON.stringify(SECRET).slice(1, -1)).slice(1, -1), 'json'],
    ['URL-encoded', encodeURIComponent(SECRET), 'url'],
    ['URL-encoded in lower case', encodeURIComponent(SECRET).replace(/%../g, (code) => code.toLowerCase()), 'url'],
    ['as a form field', new URLSearchParams({ t: SECRET }).toString().slice(2), 'url'],
    ['in base64', b64(SECRET), 'base64'],
    ['in base64 after one other byte', b64(`x${SECRET}`), 'base64'],
    ['in base64 after two other bytes, with more behind', b64(`u:${SECRET} and more`), 'base64'],
    ['in base64 of the other alphabet', Buffer.from(`x${SECRET}`).toString('base64url'), 'base64'],
    ['in hex', Buffer.from(SECRET).toString('hex'), 'hex'],
    ['in upper-case hex', Buffer.from(SECRET).toString('hex').toUpperCase(), 'hex'],
    ['split over lines', SECRET.replace(/.{5}/g, '$&\n'), 'plain'],
    ['in base64, split over lines', `${b64(`u:${SECRET}`).replace(/.{7}/g, '$&\r\n  ')}`, 'base64'],
    ['in hex, in groups', Buffer.from(SECRET).toString('hex').replace(/..../g, '$& '), 'hex'],
  ];
  for (const [how, written, form] of forms) {
    it(`is taken out ${how}`, () => {
      const { redactor, found, take } = knowing(SECRET);
      const out = redactor.text(`before: ${written} :after`, take);
      expect(out).toContain('[redacted: DEPLOY]');
      expect(out.startsWith('before: ')).toBe(true);
      expect(out.endsWith(':after')).toBe(true);
      // At most the digits that it shares with its neighbours are left.
      expect(out.length).toBeLessThanOrEqual('before: [redacted: DEPLOY] :after'.length + 24);
      expect(found).toEqual([{ credential_id: 'vcrd_1', vault_id: 'vlt_1', name: 'DEPLOY', form }]);
    });
  }

  it('that is a key of many lines is found whole, and line by line', () => {
    const body = Array.from({ length: 12 }, (_, line) =>
      b64(`line ${line} of a private key, long enough`).slice(0, 48),
    );
    const key = `-----BEGIN PRIVATE KEY-----\n${body.join('\n')}\n-----END PRIVATE KEY-----\n`;
    const { redactor, take } = knowing(key);
    const whole = redactor.text(`cat:\n${key}.`, take);
    for (const line of body) expect(whole).not.toContain(line);
    expect(redactor.text(`+ ${body[7]}`, take)).toBe('+ [redacted: DEPLOY]');
    expect(redactor.text('-----BEGIN PRIVATE KEY-----', take)).toBe('-----BEGIN PRIVATE KEY-----');
  });

  it('is taken out of what is made of strings, names of fields too, and the rest stays as it is', () => {
    const { redactor, found, take } = knowing('hunter2hunter2');
    const other = { deep: [1, null, 'nothing here'] };
    const value = { input: { 'x-hunter2hunter2': ['a', 'hunter2hunter2!'] }, other };
    const out = redactor.value(value, take);
    expect(out).toEqual({ input: { 'x-[redacted: DEPLOY]': ['a', '[redacted: DEPLOY]!'] }, other });
    expect(out.other).toBe(other);
    expect(found).toHaveLength(2);
    expect(redactor.value(other, take)).toBe(other);
  });

  it('in an image leaves a note in its place, since half an image is none', () => {
    const { redactor, take } = knowing('hunter2hunter2');
    const image = (data: string) => ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } });
    const clean = image(b64('\x89PNG and so on'));
    expect(redactor.value([clean, image(b64('\x89PNG tEXt hunter2hunter2'))], take)).toEqual([
      clean,
      { type: 'text', text: '[redacted: a file that held DEPLOY]' },
    ]);
  });

  it('is taken out of bytes, also over the border of two slices, and others stay the very same', () => {
    const { redactor, found, take } = knowing(SECRET);
    const bytes = Buffer.alloc(3 * 1024 * 1024, 0xf3);
    expect(redactor.bytes(bytes, take)).toBe(bytes);
    bytes.set(Buffer.from(SECRET), 1024 * 1024 - 5);
    bytes.set(Buffer.from(b64(`ab${SECRET}`)), 2_500_000);
    const out = Buffer.from(redactor.bytes(bytes, take));
    expect(out.includes(Buffer.from(SECRET))).toBe(false);
    expect(out.toString('latin1')).toContain('[redacted: DEPLOY]');
    expect(found.map(({ form }) => form)).toEqual(['plain', 'base64']);
  });

  it('stays known when it is replaced: nobody can say when the old one ends to be good', () => {
    const { redactor, take } = knowing('the-old-value');
    redactor.know('vcrd_1', { credential_id: null, vault_id: null, name: 'DEPLOY' }, ['the-new-value']);
    expect(redactor.text('the-old-value the-new-value', take)).toBe('[redacted: DEPLOY] [redacted: DEPLOY]');
  });
});

describe('a redactor', () => {
  it('that knows nothing gives everything back untouched', () => {
    const redactor = new Redactor();
    const fail = () => expect.unreachable();
    const value = { text: 'tok' };
    expect(redactor.active).toBe(false);
    expect(redactor.value(value, fail)).toBe(value);
    expect(redactor.text('tok', fail)).toBe('tok');
  });

  it('finds in pieces what it finds in the whole, wherever the pieces are cut', () => {
    const word = fc.constantFrom(
      SECRET,
      'tok_9f8',
      'hunter2hunter2',
      b64(SECRET),
      ' ',
      '\n',
      'aaaa',
      'hunter2',
      'unter2hunt',
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 12 }), fc.array(fc.nat(40), { maxLength: 30 }), (words, cuts) => {
        const { redactor, take } = knowing(SECRET, 'hunter2hunter2', 'aaaaaaaab');
        const text = words.join('');
        const stream = redactor.stream(take);
        let shown = '';
        let at = 0;
        for (const cut of cuts) {
          shown += stream.push(text.slice(at, at + cut));
          at += cut;
          for (const value of [SECRET, 'hunter2hunter2']) expect(shown).not.toContain(value);
        }
        shown += stream.push(text.slice(at)) + stream.end();
        const plain = (one: string) => one.replaceAll(/(\[redacted: DEPLOY\])+/g, '#');
        expect(plain(shown)).toBe(plain(redactor.text(text, take)));
      }),
      { numRuns: 500 },
    );
  });

  it('names the right credential also where another becomes known while the text comes', () => {
    const redactor = new Redactor();
    const named = (name: string) => ({ credential_id: null, vault_id: null, name });
    redactor.know('a', named('A'), ['first-secret']);
    redactor.know('b', named('B'), ['second-secret']);
    const stream = redactor.stream(() => undefined);
    const begun = stream.push('it is second-');
    redactor.know('a', named('A'), ['third-secret-of-many-forms']);
    expect(begun + stream.push('secret.') + stream.end()).toBe('it is [redacted: B].');
    expect(redactor.text('third-secret-of-many-forms second-secret', () => undefined)).toBe(
      '[redacted: A] [redacted: B]',
    );
  });

  it('holds back no more of a stream than may be the beginning of a value', () => {
    const { redactor, take } = knowing('hunter2hunter2');
    const stream = redactor.stream(take);
    expect(stream.push('listening on port 80 ')).toBe('listening on port 80 ');
    expect(stream.push('hunt')).toBe('');
    expect(stream.push('ing season')).toBe('hunting season');
    expect(stream.push('!hunter2\nhun')).toBe('!');
    expect(stream.push('ter2.')).toBe('[redacted: DEPLOY].');
  });
});
