import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type ClientAuth = 'none' | 'client_secret_basic' | 'client_secret_post';

interface Client {
  client_id: string;
  client_secret: string | undefined;
  auth: ClientAuth;
  redirect_uris: string[];
}

interface Grant {
  client: string;
  resource: string | undefined;
  /** The refresh token that is good now; a former one that comes back ends the whole grant. */
  refresh: string;
  former: Set<string>;
  ended: boolean;
}

interface Code {
  client: string;
  redirect_uri: string;
  challenge: string;
  resource: string | undefined;
}

/** What stands in for a server's answer at the token endpoint, once. */
export type Trouble = (response: ServerResponse) => void;

/**
 * An authorization server as strict as one is allowed to be: clients must register, prove who they are in exactly the way
 * they said, use PKCE, name the resource, and use each code and each refresh token once.
 */
export class AuthorizationServer {
  /** What came to the token endpoint. */
  readonly asked: URLSearchParams[] = [];
  /** Every token that was ever given out, and every secret of a client. */
  readonly secrets: string[] = [];
  /** Seconds that access tokens are good for; undefined: it does not say. */
  lifetime: number | undefined = 3600;
  trouble: Trouble | undefined;
  /** How clients may prove who they are; the first is what registered ones get. */
  auths: ClientAuth[] = ['none'];
  readonly #server: Server;
  readonly #clients = new Map<string, Client>();
  readonly #codes = new Map<string, Code>();
  readonly #grants: Grant[] = [];
  readonly #access = new Map<string, Grant>();

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        response.writeHead(400, { 'content-type': 'application/json' });
        const no = error instanceof No ? error : new No('server_error', String(error));
        response.end(JSON.stringify({ error: no.code, error_description: no.message }));
      });
    });
  }

  static async open(): Promise<AuthorizationServer> {
    const server = new AuthorizationServer();
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** A login as if a person had made it, at a client that is made for it. */
  login(auth: ClientAuth, resource?: string) {
    const client = this.#register(auth, []);
    const grant: Grant = { client: client.client_id, resource, refresh: '', former: new Set(), ended: false };
    this.#grants.push(grant);
    const { access_token, refresh_token } = this.#tokens(grant);
    return { ...client, access_token, refresh_token };
  }

  accepts(token: string | undefined): boolean {
    const grant = token === undefined ? undefined : this.#access.get(token);
    return grant !== undefined && !grant.ended;
  }

  /** The access token is good no more, as if it had expired early. */
  forget(token: string): void {
    this.#access.delete(token);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.origin);
    const json = (value: unknown, status = 200) => {
      response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
      response.end(JSON.stringify(value));
    };
    const at = `${request.method} ${url.pathname}`;
    if (at === 'GET /.well-known/oauth-authorization-server') return json(this.#metadata());
    if (at === 'POST /register') {
      const wanted = JSON.parse(await body(request)) as {
        redirect_uris?: string[];
        token_endpoint_auth_method?: string;
      };
      const uris = wanted.redirect_uris ?? [];
      if (uris.length === 0) throw new No('invalid_redirect_uri', 'no redirect_uris');
      const auth = this.auths.find((one) => one === wanted.token_endpoint_auth_method) ?? this.auths[0] ?? 'none';
      const { client_id, client_secret } = this.#register(auth, uris);
      return json(
        { ...wanted, client_id, token_endpoint_auth_method: auth, ...(client_secret ? { client_secret } : {}) },
        201,
      );
    }
    if (at === 'GET /authorize') return this.#authorize(url.searchParams, response);
    if (at === 'POST /token') {
      const type = request.headers['content-type'] ?? '';
      if (!/^application\/x-www-form-urlencoded\b/.test(type)) throw new No('invalid_request', 'not a form');
      const params = new URLSearchParams(await body(request));
      this.asked.push(params);
      const { trouble } = this;
      this.trouble = undefined;
      if (trouble) return trouble(response);
      const client = this.#authenticated(request.headers.authorization, params);
      return json(
        params.get('grant_type') === 'refresh_token' ? this.#refresh(client, params) : this.#exchange(client, params),
      );
    }
    response.writeHead(404).end();
  }

  #metadata() {
    return {
      issuer: this.origin,
      authorization_endpoint: `${this.origin}/authorize`,
      token_endpoint: `${this.origin}/token`,
      registration_endpoint: `${this.origin}/register`,
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: this.auths,
    };
  }

  #register(auth: ClientAuth, redirect_uris: string[]): Client {
    // With characters that a form must escape: a client that forgets to is found out.
    const client_secret = auth === 'none' ? undefined : this.#secret('se:cr/et+');
    const client = { client_id: `client ${randomBytes(6).toString('hex')}`, client_secret, auth, redirect_uris };
    this.#clients.set(client.client_id, client);
    return client;
  }

  /** The person's part: this one says yes to everything, at once. */
  #authorize(params: URLSearchParams, response: ServerResponse): void {
    const client = this.#clients.get(params.get('client_id') ?? '');
    const redirect_uri = params.get('redirect_uri') ?? '';
    if (!client?.redirect_uris.includes(redirect_uri))
      throw new No('invalid_request', 'no such client or redirect_uri');
    const challenge = params.get('code_challenge') ?? '';
    if (params.get('code_challenge_method') !== 'S256' || challenge.length !== 43)
      throw new No('invalid_request', 'no PKCE');
    if (params.get('response_type') !== 'code' || !params.get('state'))
      throw new No('invalid_request', 'no code or state');
    const code = this.#secret('code-');
    this.#codes.set(code, {
      client: client.client_id,
      redirect_uri,
      challenge,
      resource: params.get('resource') ?? undefined,
    });
    const back = new URL(redirect_uri);
    back.searchParams.set('code', code);
    back.searchParams.set('state', params.get('state') ?? '');
    response.writeHead(302, { location: back.href }).end();
  }

  /** Exactly the way the client was registered for, and no other beside it. */
  #authenticated(header: string | undefined, params: URLSearchParams): Client {
    const decoded = (text: string) => new URLSearchParams(`x=${text}`).get('x') ?? '';
    const [id = '', secret] = header
      ? Buffer.from(header.replace(/^Basic /, ''), 'base64')
          .toString()
          .split(':')
          .map(decoded)
      : [params.get('client_id') ?? '', params.get('client_secret') ?? undefined];
    const client = this.#clients.get(id);
    const used = header ? 'client_secret_basic' : secret === undefined ? 'none' : 'client_secret_post';
    if (!client || client.auth !== used || client.client_secret !== secret) throw new No('invalid_client', used);
    if (header && params.has('client_secret')) throw new No('invalid_request', 'two proofs');
    return client;
  }

  #exchange(client: Client, params: URLSearchParams) {
    const code = params.get('code') ?? '';
    const kept = this.#codes.get(code);
    this.#codes.delete(code);
    if (params.get('grant_type') !== 'authorization_code') throw new No('unsupported_grant_type', '');
    if (kept?.client !== client.client_id) throw new No('invalid_grant', 'no such code');
    if (kept.redirect_uri !== params.get('redirect_uri')) throw new No('invalid_grant', 'another redirect_uri');
    const verifier = createHash('sha256')
      .update(params.get('code_verifier') ?? '')
      .digest('base64url');
    if (verifier !== kept.challenge) throw new No('invalid_grant', 'the verifier does not fit');
    if ((params.get('resource') ?? undefined) !== kept.resource) throw new No('invalid_target', 'another resource');
    const { client_id } = client;
    const grant: Grant = { client: client_id, resource: kept.resource, refresh: '', former: new Set(), ended: false };
    this.#grants.push(grant);
    return this.#tokens(grant);
  }

  #refresh(client: Client, params: URLSearchParams) {
    const token = params.get('refresh_token') ?? '';
    const grant = this.#grants.find((one) => one.refresh === token || one.former.has(token));
    if (!grant || grant.client !== client.client_id || grant.ended) throw new No('invalid_grant', 'no such login');
    if (grant.former.has(token)) {
      grant.ended = true;
      throw new No('invalid_grant', 'used before');
    }
    if (grant.resource !== (params.get('resource') ?? undefined)) throw new No('invalid_target', 'another resource');
    return this.#tokens(grant);
  }

  #tokens(grant: Grant) {
    if (grant.refresh) grant.former.add(grant.refresh);
    grant.refresh = this.#secret('refresh-');
    const access_token = this.#secret('access-');
    this.#access.set(access_token, grant);
    const expires = this.lifetime === undefined ? {} : { expires_in: this.lifetime };
    return { access_token, token_type: 'Bearer', refresh_token: grant.refresh, ...expires };
  }

  #secret(prefix: string): string {
    const secret = prefix + randomBytes(18).toString('base64url');
    this.secrets.push(secret);
    return secret;
  }
}

class No extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

async function body(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of request) text += String(piece);
  return text;
}
