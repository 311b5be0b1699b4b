import { createECDH, createPrivateKey, generateKeyPairSync, hkdfSync, type KeyObject } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { certificate } from './certificate.ts';

/** A session is not expected to last longer; who takes a sandbox over has the authority vouched for anew. */
const VALID_DAYS = 90;
/** Of the curve's numbers (its order is SEC 2's), and of what is drawn for one so that no number is likelier than another. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const NUMBER_BYTES = 32;
const DRAWN_BYTES = 48;
const OF_DROVER = { name: 'organizationName', value: 'Drover' };
const SUBJECT = [{ name: 'commonName', value: 'Drover session' }, OF_DROVER];

/**
 * A certificate authority of one session's own. Its key is in this process's memory alone: it is never written anywhere.
 * It can be made again from `seed`: then what runs in the session's sandbox trusts whoever takes the sandbox over. Only the session's sandbox trusts it, and it vouches only for hosts that a credential is bound to.
 */
export class SessionAuthority {
  /** PEM. */
  readonly certificate: string;
  readonly #key: KeyObject;
  readonly #contexts = new Map<string, SecureContext>();

  /** @param seed secret, and of this session alone. Absent: it is like no other. */
  constructor(seed?: Uint8Array) {
    this.#key = seed ? keyOf(seed) : freshKey();
    this.certificate = certificate({
      subject: SUBJECT,
      issuer: SUBJECT,
      key: this.#key,
      signer: this.#key,
      extensions: [
        { name: 'basicConstraints', cA: true, pathLenConstraint: 0, critical: true },
        { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
      ],
      validDays: VALID_DAYS,
    });
  }

  /** What a TLS server needs to be `host` to the sandbox. */
  contextFor(host: string): SecureContext {
    let context = this.#contexts.get(host);
    if (!context) {
      hostKey ??= freshKey();
      const key = hostKey.export({ type: 'pkcs8', format: 'pem' });
      context = createSecureContext({ key, cert: this.#certify(host, hostKey) });
      this.#contexts.set(host, context);
    }
    return context;
  }

  #certify(host: string, key: KeyObject): string {
    const address = /^[\d.]+$|:/.test(host);
    return certificate({
      // The name goes into the alternative names alone: a common name is limited to 64 characters.
      subject: [OF_DROVER],
      issuer: SUBJECT,
      key,
      signer: this.#key,
      extensions: [
        { name: 'basicConstraints', cA: false },
        { name: 'keyUsage', digitalSignature: true, critical: true },
        { name: 'extKeyUsage', serverAuth: true },
        { name: 'subjectAltName', altNames: [address ? { type: 7, ip: host } : { type: 2, value: host }] },
      ],
      validDays: VALID_DAYS,
    });
  }
}

/** Of all hosts of all sessions: it is never outside this process, and who vouches for it differs for each session. */
let hostKey: KeyObject | undefined;

/** On a curve that every TLS client knows. It takes a millisecond. */
const freshKey = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey;

/** Always the same for the same seed. */
function keyOf(seed: Uint8Array): KeyObject {
  const drawn = Buffer.from(hkdfSync('sha256', seed, '', 'drover session authority', DRAWN_BYTES)).toString('hex');
  const number = (BigInt(`0x${drawn}`) % (ORDER - 1n)) + 1n;
  const d = Buffer.from(number.toString(16).padStart(NUMBER_BYTES * 2, '0'), 'hex');
  const curve = createECDH('prime256v1');
  curve.setPrivateKey(d);
  const point = curve.getPublicKey();
  const [x, y] = [point.subarray(1, 1 + NUMBER_BYTES), point.subarray(1 + NUMBER_BYTES)];
  const text = (bytes: Buffer): string => bytes.toString('base64url');
  return createPrivateKey({ format: 'jwk', key: { kty: 'EC', crv: 'P-256', d: text(d), x: text(x), y: text(y) } });
}
