/** A user's token for git over https at one host, as git inside a sandbox may know it. */
export interface GitLogin {
  /** With `:port` where it is not 443. */
  host: string;
  user: string;
  placeholder: string;
}

/**
 * Variables that make git (2.31 and later) answer the question for a login with the placeholder, in every repository
 * inside and without a file: a helper for that host alone, in place of any other, and never a prompt.
 */
export function gitHelperEnv(logins: readonly GitLogin[]): Record<string, string> {
  if (logins.length === 0) return {};
  // These variables take the place of the ones every program in a sandbox has, which say this much: the workspace may
  // belong to another user than the one inside.
  const settings: [string, string][] = [['safe.directory', '*']];
  for (const { host, user, placeholder } of logins) {
    const key = `credential.https://${host}`;
    // An empty helper takes back those that were set before.
    settings.push([`${key}.helper`, '']);
    settings.push([`${key}.helper`, helper(user, placeholder)]);
    settings.push([`${key}.username`, user]);
  }
  const env: Record<string, string> = { GIT_CONFIG_COUNT: String(settings.length), GIT_TERMINAL_PROMPT: '0' };
  settings.forEach(([key, value], index) => {
    env[`GIT_CONFIG_KEY_${index}`] = key;
    env[`GIT_CONFIG_VALUE_${index}`] = value;
  });
  return env;
}

/** A shell function, as git runs it: `get` is answered, `store` and `erase` are nothing to us. */
const helper = (user: string, placeholder: string): string =>
  `!f() { [ "$1" = get ] && printf 'username=%s\\npassword=%s\\n' ${quoted(user)} ${quoted(placeholder)}; }; f`;

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
