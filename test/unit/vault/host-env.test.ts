import { expect, it } from 'vitest';
import { withoutSecrets } from '../../../src/vault/host-env.ts';

it('what makes sandboxes has the host’s variables, but none that holds a secret, the model’s key first of all', () => {
  const secret = {
    ANTHROPIC_API_KEY: 'k',
    ANTHROPIC_AUTH_TOKEN: 'k',
    GITHUB_TOKEN: 'k',
    npm_config__auth: 'k',
    AWS_SECRET_ACCESS_KEY: 'k',
    DB_PASSWORD: 'k',
  };
  const plain = { PATH: '/bin', DOCKER_HOST: 'unix:///x', DOCKER_CONFIG: '/c', SSH_AUTH_SOCK: '/s', HOME: '/h' };
  expect(withoutSecrets({ ...secret, ...plain })).toEqual(plain);
});
