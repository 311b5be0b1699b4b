import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';

/** Addresses that are no public host's: this machine, its networks, a cloud's metadata, documentation, multicast. */
const IPV4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`.split(/\s+/);
/** The last ones carry an IPv4 address inside: they would be a way round the list above. */
const IPV6 = `::/127 100::/64 2001:db8::/32 fc00::/7 fe80::/10 fec0::/10 ff00::/8 ::ffff:0:0/96 ::/96 64:ff9b::/96
  64:ff9b:1::/48 2001::/32 2002::/16`.split(/\s+/);

/** The addresses of a host's name; may throw as `dns.lookup` does. */
export type Resolve = (host: string) => Promise<string[]>;

export const resolveByDns: Resolve = async (host) =>
  (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);

/** A host has no address a sandbox may be connected to. `reason` is for the ledger and for the one who asked. */
export class NoAddress extends Error {
  readonly reason: 'unknown_host' | 'private_address';

  constructor(reason: NoAddress['reason'], host: string) {
    super(
      reason === 'unknown_host'
        ? `the name ${host} is not known`
        : `${host} is an address of this machine or of a private network`,
    );
    this.reason = reason;
  }
}

/**
 * Resolves names and keeps what a sandbox may be connected to. Whoever connects uses these very addresses:
 * a name that answers otherwise the second time gains nothing.
 */
export class Addresses {
  readonly #resolve: Resolve;
  readonly #refused = { ipv4: blockList(IPV4), ipv6: blockList(IPV6) };
  readonly #excepted: BlockList;

  /** `excepted`: ranges in CIDR form that may be connected to although they are private. */
  constructor(resolve: Resolve, excepted: readonly string[]) {
    this.#resolve = resolve;
    this.#excepted = blockList(excepted);
  }

  /** At least one address. Throws `NoAddress`. */
  async of(host: string): Promise<string[]> {
    const all = isIP(host) ? [host] : await this.#resolve(host).catch(() => []);
    if (all.length === 0) throw new NoAddress('unknown_host', host);
    const open = all.filter((address) => this.#open(address));
    if (open.length === 0) throw new NoAddress('private_address', host);
    return open;
  }

  #open(address: string): boolean {
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    return !this.#refused[family].check(address, family) || this.#excepted.check(address, family);
  }
}

function blockList(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [net = '', bits] = range.split('/');
    if (isIP(net) === 0) continue;
    const family = isIP(net) === 6 ? 'ipv6' : 'ipv4';
    list.addSubnet(net, Number(bits ?? (family === 'ipv6' ? 128 : 32)), family);
  }
  return list;
}
