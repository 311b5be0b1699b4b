const PASSED = /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_.*|TZ|.*_HOME|GOPATH|NVM_DIR|VIRTUAL_ENV)$/;

/** Of this process's environment only what programs need to be found and to speak the right language; no secrets. */
export const passedEnv = (env: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => PASSED.test(entry[0]) && entry[1] !== undefined),
  );
