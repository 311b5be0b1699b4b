import { INSIDE, type InsideFile } from '../egress.ts';

/** Where what the sandbox is given lies inside it. */
const FOLDER = '/run/drover';
const CA = `${FOLDER}/ca.pem`;
const BUNDLE = `${FOLDER}/ca-bundle.pem`;

/** Where the proxy is, in the spellings that programs look for. `user` is whom the ledger puts a connection down to. */
export function proxyEnv(user: string, token: string): Record<string, string> {
  const url = `http://${user}:${token}@${INSIDE.host}:${INSIDE.port}`;
  return { HTTP_PROXY: url, HTTPS_PROXY: url, http_proxy: url, https_proxy: url, ALL_PROXY: url, all_proxy: url };
}

/** What every process of a sandbox gets. What runs inside is reached without the proxy. */
export function insideEnv(user: string, token: string): Record<string, string> {
  const here = 'localhost,127.0.0.1,::1';
  return {
    ...proxyEnv(user, token),
    NO_PROXY: here,
    no_proxy: here,
    // Node asks for no proxy by itself; from version 24 on it does if this is set.
    NODE_USE_ENV_PROXY: '1',
    // Added to what Node trusts anyway; the others replace what a program trusts, so they get all of it.
    NODE_EXTRA_CA_CERTS: CA,
    SSL_CERT_FILE: BUNDLE,
    CURL_CA_BUNDLE: BUNDLE,
    REQUESTS_CA_BUNDLE: BUNDLE,
    GIT_SSL_CAINFO: BUNDLE,
    PIP_CERT: BUNDLE,
    CARGO_HTTP_CAINFO: BUNDLE,
    AWS_CA_BUNDLE: BUNDLE,
    DENO_CERT: CA,
  };
}

export function insideFiles(certificate: string, trusted: readonly string[]): InsideFile[] {
  const own = certificate.trim();
  return [
    { path: CA, content: `${own}\n` },
    { path: BUNDLE, content: `${[...trusted.map((one) => one.trim()), own].join('\n')}\n` },
  ];
}
