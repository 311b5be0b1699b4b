import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { certificate } from './certificate.ts';

/** A session is not expected to last longer; a sandbox that is found again gets a fresh authority anyway. */
const VALID_DAYS = 90;
const OF_DROVER = { name: 'organizationName', value: 'Drover' };
const SUBJECT = [{ name: 'commonName', value: 'Drover session' }, OF_DROVER];

/**
 * A certificate authority of one session's own. Its key is in this process's memory alone: it is never written anywhere.
 * Only the session's sandbox trusts it, and it vouches only for hosts that a credential is bound to.
 */
export class SessionAuthority {
  /** PEM. */
  readonly certificate: string;
  readonly #key = freshKey();
  readonly #contexts = new Map<string, SecureContext>();

  constructor() {
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
