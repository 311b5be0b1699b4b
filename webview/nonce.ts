/*
 * The toolkit probes the browser with a style element of its own, which the panel's CSP only lets through with a nonce.
 * It looks for the nonce in this meta element, once, while it is loaded: so this module comes before it.
 */
const nonce = document.currentScript?.nonce;
if (nonce) {
  const meta = document.createElement('meta');
  meta.setAttribute('property', 'csp-nonce');
  meta.content = nonce;
  document.head.append(meta);
}
