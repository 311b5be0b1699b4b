import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeWith, engineAvailable } from '../support/engine.ts';
import { ATTEMPTS } from './attempts.ts';
import { type Field, openField } from './field.ts';
import { attemptIn } from './redteam.ts';
import { USEFUL } from './useful.ts';

/** One or two of each kind; `npm run redteam` tries them all. */
const SAMPLE = [
  'env',
  "the session's certificate authority: its key",
  "the session's own log",
  'the relay: replaced, and killed',
  "a port of the host at its bridge's address",
  'another container, by IPv6',
  'names, by DNS',
  'CONNECT to a host that is not allowed',
  'CONNECT to an allowed host, TLS for another',
  'fronting: another :authority in HTTP/2',
  "the host's own ports through the proxy, as 0x7f.1",
  'an allowed name that is a metadata address',
  'DNS rebinding: a name that turns into loopback after the first answer',
  "the proxy's own pages",
  "the credential's URL without a tunnel, to be sent without TLS",
  "another session's placeholder",
  'a placeholder in a large body, in pieces',
  'a redirect to another allowed host',
  'a request hidden in the body of another',
  'an echo in headers and body',
  'an echo in pieces of three bytes',
  'an echo in a websocket',
];

const engine = await engineAvailable();

describeWith(engine, 'a hostile script in a sandbox', () => {
  let field: Field;
  beforeAll(async () => {
    field = await openField();
  });
  afterAll(() => field?.close());

  it('gets no secret, reaches nothing past the proxy, and stands in the ledger with all it tried', async () => {
    const chosen = ATTEMPTS.filter(({ name }) => SAMPLE.includes(name));
    expect(chosen.map(({ name }) => name).sort()).toEqual([...SAMPLE].sort());
    for (const attempt of chosen) {
      const { leaks, output } = await attemptIn(field, attempt);
      expect(leaks, `${attempt.name}\n${output.slice(0, 2000)}`).toEqual([]);
    }
  }, 90_000);

  it.each(USEFUL)('works with placeholders only: $name', async ({ script, expect: wanted }) => {
    expect((await field.run(script)).output).toMatch(wanted);
  });

  it('leaves the secret in no file, process, description or log', async () => {
    expect(await field.search()).toEqual([]);
  });

  it('tells of a placeholder that was on its way to the wrong place, with the call that sent it', () => {
    expect(field.tripped.map(({ where }) => where)).toContain('body');
    expect(field.tripped.every(({ execution }) => execution?.startsWith('exec_'))).toBe(true);
    expect(field.tripped.some(({ credentialId }) => credentialId === null)).toBe(true);
  });
});
