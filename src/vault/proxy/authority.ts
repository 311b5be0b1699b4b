import { generateKeyPair, randomBytes } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { promisify } from 'node:util';
import forge from 'node-forge';

const KEY_BITS = 2048;
const DAY_MS = 86_400_000;
/** A session is not expected to last longer; a sandbox that is found again gets a fresh authority anyway. */
const VALID_DAYS = 90;

/**
 * A certificate authority of one session's own. Its key is in this process's memory alone: it is never written anywhere.
 * Only the session's sandbox trusts it, and it vouches only for hosts that a credential is bound to.
 */
export class SessionAuthority {
  /** PEM. */
  readonly certificate: string;
  readonly #issuer: forge.pki.Certificate;
  readonly #key: forge.pki.rsa.PrivateKey;
  readonly #hostKey: { publicKey: string; privateKey: string };
  readonly #contexts = new Map<string, SecureContext>();

  private constructor(own: RsaKey, hostKey: RsaKey) {
    this.#key = forge.pki.privateKeyFromPem(own.privateKey);
    this.#hostKey = hostKey;
    this.#issuer = blank(own.publicKey, [
      { name: 'commonName', value: 'Drover session' },
      { name: 'organizationName', value: 'Drover' },
    ]);
    this.#issuer.setIssuer(this.#issuer.subject.attributes);
    this.#issuer.setExtensions([
      { name: 'basicConstraints', cA: true, pathLenConstraint: 0, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
      { name: 'subjectKeyIdentifier' },
    ]);
    this.#issuer.sign(this.#key, forge.md.sha256.create());
    this.certificate = forge.pki.certificateToPem(this.#issuer);
  }

  /** RSA keys are made off the event loop, 0.1 to 0.3 s each. */
  static async create(): Promise<SessionAuthority> {
    hostKey ??= rsaKey();
    const [own, host] = await Promise.all([rsaKey(), hostKey]);
    return new SessionAuthority(own, host);
  }

  /** What a TLS server needs to be `host` to the sandbox. */
  contextFor(host: string): SecureContext {
    let context = this.#contexts.get(host);
    if (!context) {
      context = createSecureContext({ key: this.#hostKey.privateKey, cert: this.#certify(host) });
      this.#contexts.set(host, context);
    }
    return context;
  }

  #certify(host: string): string {
    // The name goes into the alternative names alone: a common name is limited to 64 characters.
    const certificate = blank(this.#hostKey.publicKey, [{ name: 'organizationName', value: 'Drover' }]);
    certificate.setIssuer(this.#issuer.subject.attributes);
    const address = /^[\d.]+$|:/.test(host);
    certificate.setExtensions([
      { name: 'basicConstraints', cA: false },
      { name: 'keyUsage', digitalSignature: true, keyEncipherment: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      { name: 'subjectAltName', altNames: [address ? { type: 7, ip: host } : { type: 2, value: host }] },
      {
        name: 'authorityKeyIdentifier',
        keyIdentifier: this.#issuer.generateSubjectKeyIdentifier().getBytes(),
      },
    ]);
    certificate.sign(this.#key, forge.md.sha256.create());
    return forge.pki.certificateToPem(certificate);
  }
}

/** Of all hosts of all sessions: it is never outside this process, and who vouches for it differs for each session. */
let hostKey: Promise<RsaKey> | undefined;

interface RsaKey {
  publicKey: string;
  privateKey: string;
}

const rsaKey = (): Promise<RsaKey> =>
  promisify(generateKeyPair)('rsa', {
    modulusLength: KEY_BITS,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  });

function blank(publicKey: string, subject: forge.pki.CertificateField[]): forge.pki.Certificate {
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = forge.pki.publicKeyFromPem(publicKey);
  // Positive whatever the first random byte is.
  certificate.serialNumber = `00${randomBytes(16).toString('hex')}`;
  certificate.validity.notBefore = new Date(Date.now() - DAY_MS);
  certificate.validity.notAfter = new Date(Date.now() + VALID_DAYS * DAY_MS);
  certificate.setSubject(subject);
  return certificate;
}
