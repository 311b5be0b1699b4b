/** Why a connection or request did not go through; the words of the ledger. */
export type Reason =
  /** No rule of the environment names the host. */
  | 'not_listed'
  | 'unknown_host'
  | 'private_address'
  /** The names inside (SNI, Host, the request's own URL) are not the one that was asked for and allowed. */
  | 'wrong_name'
  /** Neither TLS nor HTTP, or not in a way that can be checked. */
  | 'not_http'
  /** A placeholder was on its way to where its credential does not belong. */
  | 'placeholder'
  | 'unauthenticated'
  /** The credential's value could not be had. */
  | 'credential'
  /** The host did not answer, or not as it should. */
  | 'upstream';

/** A request or connection that the proxy answers itself. `message` is told to the one who asked, inside the sandbox. */
export class Refused extends Error {
  readonly reason: Reason;
  readonly status: number;

  constructor(reason: Reason, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.reason = reason;
    this.status = reason === 'upstream' || reason === 'credential' ? 502 : reason === 'wrong_name' ? 421 : 403;
  }
}
