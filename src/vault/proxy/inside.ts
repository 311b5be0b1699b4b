import { INSIDE, type InsideFile } from '../egress.ts';

/** Where it is reached inside, and where what it is given lies. */
export interface Inside {
  folder: string;
  port: number;
}

const caFile = ({ folder }: Inside): string => `${folder}/ca.pem`;
const bundleFile = ({ folder }: Inside): string => `${folder}/ca-bundle.pem`;

/** Where the proxy is, in the spellings that programs look for. `user` is whom the ledger puts a connection down to. */
export function proxyEnv(user: string, token: string, { port }: Inside): Record<string, string> {
  const url = `http://${user}:${token}@${INSIDE.host}:${port}`;
  return { HTTP_PROXY: url, HTTPS_PROXY: url, http_proxy: url, https_proxy: url, ALL_PROXY: url, all_proxy: url };
}

/** What every process of a sandbox gets. What runs inside is reached without the proxy. */
export function insideEnv(user: string, token: string, inside: Inside): Record<string, string> {
  const ca = caFile(inside);
  const bundle = bundleFile(inside);
  const here = 'localhost,127.0.0.1,::1';
  return {
    ...proxyEnv(user, token, inside),
    NO_PROXY: here,
    no_proxy: here,
    // Node asks for no proxy by itself; from version 24 on it does if this is set.
    NODE_USE_ENV_PROXY: '1',
    // Added to what Node trusts anyway; the others replace what a program trusts, so they get all of it.
    NODE_EXTRA_CA_CERTS: ca,
    SSL_CERT_FILE: bundle,
    CURL_CA_BUNDLE: bundle,
    REQUESTS_CA_BUNDLE: bundle,
    GIT_SSL_CAINFO: bundle,
    PIP_CERT: bundle,
    CARGO_HTTP_CAINFO: bundle,
    AWS_CA_BUNDLE: bundle,
    DENO_CERT: ca,
  };
}

export function insideFiles(certificate: string, trusted: readonly string[], inside: Inside): InsideFile[] {
  const own = certificate.trim();
  return [
    { path: caFile(inside), content: `${own}\n` },
    { path: bundleFile(inside), content: `${[...trusted.map((one) => one.trim()), own].join('\n')}\n` },
  ];
}
