import { DroverError } from '../protocol/errors.ts';
import type { CredentialAuth } from '../protocol/vault.ts';
import { MIN_SECRET } from './secret-forms.ts';

/** Something about a vault that a person must mend; `field` names what. */
export class VaultError extends DroverError {
  readonly field: string | null;

  constructor(message: string, options: { field?: string; cause?: unknown } = {}) {
    super('settings', message, options);
    this.field = options.field ?? null;
  }
}

/** The values of one credential by their public names. They go into the secret storage as one entry. */
export type SecretValues = Readonly<Record<string, string>>;

export interface ValueField {
  name: string;
  /** What a person is asked for. */
  label: string;
  required: boolean;
}

/** Characters. Keys and tokens are far shorter; the door of the log must look for every piece of it. */
const MAX_VALUE = 16 * 1024;

const required = (name: string, label: string): ValueField => ({ name, label, required: true });

/** The values a credential of this kind has; the first is the one that is put in on the way out. */
export function valueFields(auth: CredentialAuth): readonly [ValueField, ...ValueField[]] {
  switch (auth.type) {
    case 'environment_variable':
      return [required('secret_value', `Value of ${auth.secret_name}`)];
    case 'static_bearer':
      return [required('token', `Token for ${auth.mcp_server_url}`)];
    case 'git_https':
      return [required('token', `Token of ${auth.user} at ${auth.host}`)];
    case 'mcp_oauth': {
      const access = required('access_token', `Access token for ${auth.mcp_server_url}`);
      if (!auth.refresh) return [access];
      const refresh = required('refresh_token', 'Refresh token');
      if (auth.refresh.token_endpoint_auth.type === 'none') return [access, refresh];
      return [access, refresh, required('client_secret', `Secret of the client ${auth.refresh.client_id}`)];
    }
  }
}

/** Why this can't be a value, in a sentence; undefined if it can. */
export function valueProblem(auth: CredentialAuth, name: string, value: string): string | undefined {
  if (value.length < MIN_SECRET) {
    return `A secret needs at least ${MIN_SECRET} characters: a shorter one can’t be told from ordinary text, so it could not be kept out of the log.`;
  }
  if (value.length > MAX_VALUE) return `A secret has at most ${MAX_VALUE} characters.`;
  if (/^drover_ph_/.test(value)) return 'This is a placeholder of Drover’s, not the secret it stands for.';
  // Everything but a value for the body alone goes into a header, where a line break would begin another header.
  const bodyOnly =
    auth.type === 'environment_variable' && auth.injection_location?.body && auth.injection_location.header === false;
  if (!bodyOnly && /\p{Cc}/u.test(value)) return 'A secret that goes into a header must be one line.';
  if (auth.type !== 'environment_variable' && name !== 'client_secret' && /\s/.test(value))
    return 'A token has no spaces in it.';
  if ('mcp_server_url' in auth && name !== 'client_secret' && !/^[\x21-\x7e]*$/.test(value))
    return 'A token has plain letters, digits and signs only.';
  return undefined;
}

/** Throws `VaultError` naming the first field that is missing or can't be. */
export function checkValues(auth: CredentialAuth, values: SecretValues): void {
  const fields = valueFields(auth);
  for (const name of Object.keys(values)) {
    if (!fields.some((field) => field.name === name)) {
      throw new VaultError(`The secret was not saved: a credential of this kind has no ${name}.`, { field: name });
    }
  }
  for (const { name } of fields) {
    const value = values[name];
    const problem = value === undefined ? 'It is missing.' : valueProblem(auth, name, value);
    if (problem) throw new VaultError(`The secret was not saved: ${name}: ${problem}`, { field: name });
  }
}
