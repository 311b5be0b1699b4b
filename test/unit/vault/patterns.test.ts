import { describe, expect, it } from 'vitest';
import { mint } from '../../../src/protocol/ids.ts';
import { MASK, maskSecrets } from '../../../src/vault/patterns.ts';

const key = Buffer.from('a key of this test');
const session = mint.session();
const mask = (text: string, revealed: string[] = []) => maskSecrets(text, key, session, revealed);

/** Put together here, so that no scanner of this repository takes them for real. */
const fake = (...parts: string[]) => parts.join('');
const letters = (count: number) => 'aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY'.repeat(8).slice(0, count);

describe('what looks like a secret in an output', () => {
  const looks: [string, string][] = [
    ['AWS access key', fake('AK', 'IA', 'Q3EGRIY7ZZZTESTX')],
    ['GitHub token', fake('gh', 'p_', letters(36))],
    ['GitHub token', fake('github', '_pat_', letters(82))],
    ['GitLab token', fake('gl', 'pat-', letters(20))],
    ['Slack token', fake('xo', 'xb-', '1234567890-', letters(12))],
    ['Stripe key', fake('sk_', 'live_', letters(24))],
    ['Anthropic key', fake('sk-', 'ant-api03-', letters(40))],
    ['OpenAI key', fake('sk-', 'proj-', letters(40))],
    ['Google key', fake('AI', 'za', letters(35))],
    ['npm token', fake('np', 'm_', letters(36))],
    ['Hugging Face token', fake('h', 'f_', letters(34))],
    ['signed token', fake('ey', `Jhbgciojiu1.eyJ${letters(20)}.${letters(30)}`)],
  ];
  for (const [kind, value] of looks) {
    it(`is masked: a ${kind} (${value.slice(0, 5)}…)`, () => {
      const { text, masked } = mask(`before "${value}" after`);
      expect(text).toBe(`before "[masked: ${kind}, ${value.length} characters; a person can reveal it]" after`);
      expect(masked).toEqual([{ kind, finding: expect.stringMatching(/^[0-9a-f]{16}$/), count: 1 }]);
      expect(text).toMatch(MASK);
    });
  }

  it('is masked: a private key, whole, and one that an output was cut in', () => {
    const begin = fake('-----BEGIN RSA PRIV', 'ATE KEY-----');
    const pem = `${begin}\n${letters(64)}\n${letters(30)}\n${fake('-----END RSA PRIV', 'ATE KEY-----')}`;
    expect(mask(`a\n${pem}\nb`).text).toMatch(/^a\n\[masked: private key, \d+ characters; .*\]\nb$/);
    expect(mask(`${begin}\n${letters(40)}`).text).toMatch(/^\[masked: private key/);
  });

  it('is masked: the lines of an .env file that hold one, as read and grep show them too', () => {
    const value = letters(24);
    const lines = [
      `     3\tDB_PASSWORD=${value}`,
      `export API_KEY="${value}"`,
      `.env:7:SESSION_SECRET='${value}'`,
      'DATABASE=postgres://app:s3cr3tPassw0rd@db/app',
    ];
    const { text, masked } = mask(lines.join('\n'));
    expect(text).not.toContain(value);
    expect(text).not.toContain('s3cr3tPassw0rd');
    expect(text.split('\n')[0]).toMatch(/^ {5}3\tDB_PASSWORD=\[masked: secret of an environment, 24 characters/);
    expect(masked.map(({ kind, count }) => [kind, count])).toEqual([
      ['secret of an environment', 3],
      ['password in an address', 1],
    ]);
  });

  it('is nothing of what only speaks of secrets', () => {
    const text = [
      'const token = await getToken(request, { scope: "all" });',
      `GITHUB_TOKEN=$${'{{ secrets.GITHUB_TOKEN }}'}`,
      'API_KEY=your-api-key-here',
      'DB_PASSWORD=changeme-changeme',
      'AWS_SECRET_ACCESS_KEY=$(vault read key)',
      'PRIVATE_KEY=/etc/ssl/private/server.pem',
      'NPM_TOKEN=drover_ph_0123456789abcdefghijABCDEFGHIJ12',
      'SECRET_TOKEN=xxxxxxxxxxxxxxxxxxxx',
      'commit 3ff0cdf0a1b2c3d4e5f60718293a4b5c6d7e8f90',
      'sk-learn is a library; task-force-of-the-whole-department',
      '"integrity": "sha512-aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYaB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0=="',
      'https://user@example.com/path and http://localhost:8080/a@b',
    ].join('\n');
    expect(mask(text)).toEqual({ text, masked: [] });
  });

  it('is shown once its finding is revealed, in this session alone', () => {
    const value = fake('gh', 'p_', letters(36));
    const finding = mask(value).masked[0]?.finding ?? '';
    expect(mask(`token ${value}`, [finding])).toEqual({ text: `token ${value}`, masked: [] });
    expect(maskSecrets(value, key, mint.session(), [finding]).text).toMatch(MASK);
    expect(maskSecrets(value, Buffer.from('another key'), session, [finding]).text).toMatch(MASK);
  });
});
