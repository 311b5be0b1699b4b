/** What is true of every program run in a sandbox: nothing may wait for a terminal or an editor. */
export const NO_TERMINAL: Readonly<Record<string, string>> = {
  TERM: 'dumb',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  GIT_EDITOR: 'true',
  GIT_TERMINAL_PROMPT: '0',
  // The workspace may belong to another user than the one inside; git refuses to work in it without this.
  GIT_CONFIG_COUNT: '1',
  GIT_CONFIG_KEY_0: 'safe.directory',
  GIT_CONFIG_VALUE_0: '*',
};
