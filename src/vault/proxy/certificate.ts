import { createHash, createPublicKey, type KeyObject, randomBytes, sign } from 'node:crypto';
import forge from 'node-forge';

const { asn1, pki } = forge;
const DAY_MS = 86_400_000;
const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2';
/** ms. From then on a certificate writes its years with four digits (RFC 5280, 4.1.2.5). */
const LONG_YEARS = Date.UTC(2050);

export interface CertificateOptions {
  subject: forge.pki.CertificateField[];
  issuer: forge.pki.CertificateField[];
  /** Whose it is, and who vouches for it: private keys on a curve. */
  key: KeyObject;
  signer: KeyObject;
  /** As the library describes them, beside the two that say which key is whose. */
  extensions: object[];
  validDays: number;
}

/**
 * An X.509 certificate, signed with ECDSA and SHA-256. PEM. The library writes its parts; what concerns the keys is done
 * here, since it knows none but RSA's, and to make one of those takes a hundred times as long as one on a curve.
 */
export function certificate(options: CertificateOptions): string {
  const key = publicPart(options.key);
  const algorithm = sequence(primitive(asn1.Type.OID, asn1.oidToDer(ECDSA_WITH_SHA256).getBytes()));
  const parts = pki.createCertificate();
  parts.setSubject(options.subject);
  parts.setIssuer(options.issuer);
  parts.setExtensions([
    ...options.extensions,
    { name: 'subjectKeyIdentifier', value: primitive(asn1.Type.OCTETSTRING, keyId(key)) },
    { name: 'authorityKeyIdentifier', keyIdentifier: keyId(publicPart(options.signer)) },
  ]);
  const now = Date.now();
  const body = sequence(
    asn1.create(asn1.Class.CONTEXT_SPECIFIC, 0, true, [primitive(asn1.Type.INTEGER, '\x02')]),
    // Positive and as short as can be, whatever the random bytes are.
    primitive(asn1.Type.INTEGER, `\x01${randomBytes(15).toString('latin1')}`),
    algorithm,
    pki.distinguishedNameToAsn1(parts.issuer),
    sequence(date(now - DAY_MS), date(now + options.validDays * DAY_MS)),
    pki.distinguishedNameToAsn1(parts.subject),
    asn1.fromDer(key.toString('latin1')),
    extensions(parts),
  );
  const signature = sign('sha256', bytes(body), options.signer);
  const whole = sequence(body, algorithm, primitive(asn1.Type.BITSTRING, `\0${signature.toString('latin1')}`));
  return forge.pem.encode({ type: 'CERTIFICATE', body: asn1.toDer(whole).getBytes() });
}

const sequence = (...parts: forge.asn1.Asn1[]): forge.asn1.Asn1 =>
  asn1.create(asn1.Class.UNIVERSAL, asn1.Type.SEQUENCE, true, parts);

const primitive = (type: forge.asn1.Type, value: string): forge.asn1.Asn1 =>
  asn1.create(asn1.Class.UNIVERSAL, type, false, value);

const bytes = (part: forge.asn1.Asn1): Buffer => Buffer.from(asn1.toDer(part).getBytes(), 'latin1');

function date(ms: number): forge.asn1.Asn1 {
  const when = new Date(ms);
  return ms < LONG_YEARS
    ? primitive(asn1.Type.UTCTIME, asn1.dateToUtcTime(when))
    : primitive(asn1.Type.GENERALIZEDTIME, asn1.dateToGeneralizedTime(when));
}

/** Its types do not name this one. */
function extensions(parts: forge.pki.Certificate): forge.asn1.Asn1 {
  const { certificateExtensionsToAsn1 } = pki as typeof pki & {
    certificateExtensionsToAsn1(all: forge.pki.Certificate['extensions']): forge.asn1.Asn1;
  };
  return certificateExtensionsToAsn1(parts.extensions);
}

/** DER of the `SubjectPublicKeyInfo`. */
const publicPart = (key: KeyObject): Buffer => createPublicKey(key).export({ type: 'spki', format: 'der' });

/** What tells one key from another: any digest will do (RFC 5280, 4.2.1.2). */
const keyId = (key: Buffer): string => createHash('sha256').update(key).digest().subarray(0, 20).toString('latin1');
