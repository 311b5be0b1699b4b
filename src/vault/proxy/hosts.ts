import { isIP } from 'node:net';
import type { Networking } from '../../protocol/environment.ts';
import type { Bound } from '../egress.ts';

/** Where a connection is to go, in the one spelling that is compared: lower case, no final dot, an IPv6 address bare. */
export interface Target {
  scheme: 'http' | 'https';
  host: string;
  port: number;
}

/**
 * `host:port` of a CONNECT or a Host header. Undefined for anything that is not exactly that.
 * The URL parser does the reading: it knows every spelling of an address (`127.1`, `0x7f000001`, full-width digits).
 */
export function parseAuthority(text: string | undefined, scheme: Target['scheme']): Target | undefined {
  if (text === undefined || !/^[^\s/?#@\\]+$/.test(text)) return undefined;
  return parseTarget(`${scheme}://${text}/`)?.target;
}

/** An absolute http or https URL and its path with the query. Undefined for any other, or one with a user in it. */
export function parseTarget(text: string): { target: Target; path: string } | undefined {
  const url = URL.parse(text);
  if (!url || url.username || url.password) return undefined;
  const scheme = url.protocol === 'https:' ? 'https' : url.protocol === 'http:' ? 'http' : undefined;
  if (!scheme) return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  if (!host) return undefined;
  return {
    target: { scheme, host, port: Number(url.port) || defaultPort(scheme) },
    path: url.pathname + url.search,
  };
}

export const defaultPort = (scheme: Target['scheme']): number => (scheme === 'https' ? 443 : 80);

/** As a Host header has it: no default port, an IPv6 address in brackets. */
export function authority(target: Target): string {
  const host = target.host.includes(':') ? `[${target.host}]` : target.host;
  return target.port === defaultPort(target.scheme) ? host : `${host}:${target.port}`;
}

export const sameTarget = (a: Target, b: Target): boolean =>
  a.scheme === b.scheme && a.host === b.host && a.port === b.port;

/** `*.example.org` is every host below that domain, not the domain itself. */
function hostMatches(pattern: string, host: string): boolean {
  const name = pattern.toLowerCase().replace(/\.$/, '');
  if (!name.startsWith('*.')) return name === host;
  return isIP(host) === 0 && host.endsWith(name.slice(1)) && host.length > name.length - 1;
}

/** A credential goes over https alone. */
export function isBound(bound: 'any' | readonly Bound[], target: Target): boolean {
  if (target.scheme !== 'https') return false;
  if (bound === 'any') return target.port === 443;
  return bound.some((one) => (one.port ?? 443) === target.port && hostMatches(one.host, target.host));
}

/** What the usual package managers fetch from, by domain; the empty name is the domain itself. */
const REGISTRY_HOSTS: Readonly<Record<string, readonly string[]>> = {
  'npmjs.org': ['registry'],
  'yarnpkg.com': ['registry'],
  'pypi.org': [''],
  'pythonhosted.org': ['files'],
  'crates.io': ['', 'index', 'static'],
  'golang.org': ['proxy', 'sum'],
  'rubygems.org': ['', 'index'],
  'debian.org': ['deb', 'security'],
  'ubuntu.com': ['archive', 'security', 'ports'],
  'alpinelinux.org': ['dl-cdn'],
  'maven.org': ['repo1'],
  'apache.org': ['repo.maven'],
  'gradle.org': ['plugins', 'services'],
  'nuget.org': ['api'],
  'packagist.org': ['repo'],
};
const REGISTRIES: readonly string[] = Object.entries(REGISTRY_HOSTS).flatMap(([domain, names]) =>
  names.map((name) => (name === '' ? domain : `${name}.${domain}`)),
);

const DEFAULT: Networking = { type: 'limited', allowed_hosts: [], allow_package_managers: true };

/**
 * Whether an environment lets its sandbox go there. A bare name stands for ports 80 and 443; `name:port` for that one.
 * Absent networking is the default of a new environment: package managers only.
 */
export function isAllowed(
  networking: Networking = DEFAULT,
  mcpHosts: readonly string[],
  { host, port }: Target,
): boolean {
  if (networking.type === 'none') return false;
  if (networking.type === 'unrestricted') return true;
  const names = [
    ...networking.allowed_hosts,
    ...(networking.allow_package_managers ? REGISTRIES : []),
    ...(networking.allow_mcp_servers ? mcpHosts : []),
  ];
  return names.some((entry) => {
    const [, name = entry, ofPort] = /^(.*[^:]):(\d+)$/.exec(entry) ?? [];
    return (ofPort ? Number(ofPort) === port : port === 80 || port === 443) && hostMatches(name, host);
  });
}
