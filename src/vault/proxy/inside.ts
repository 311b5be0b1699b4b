import { rootCertificates } from 'node:tls';
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

/** The same certificate comes with lines of different length. */
const plain = (pem: string): string => pem.replaceAll(/\s/g, '');

export function insideFiles(certificate: string, trusted: readonly string[], inside: Inside): InsideFile[] {
  const own = certificate.trim();
  const all = [...new Map(trusted.map((one) => [plain(one), one.trim()]))];
  const roots = new Set(rootCertificates.map(plain));
  // What programs don't know that only add to what they know by themselves, such as a company's authority.
  const others = all.filter(([one]) => !roots.has(one));
  return [
    { path: caFile(inside), content: `${[own, ...others.map(([, pem]) => pem)].join('\n')}\n` },
    { path: bundleFile(inside), content: `${[...all.map(([, pem]) => pem), own].join('\n')}\n` },
  ];
}
