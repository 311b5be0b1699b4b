/** Names of variables that hold secrets, as people and programs name them. */
const SECRET_NAME = /TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|AUTH$/i;

/**
 * The host's variables without those that hold secrets, the model's key among them. For what makes sandboxes: a
 * repository's devcontainer.json may have any variable of the host put inside (`${localEnv:…}`).
 */
export const withoutSecrets = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !SECRET_NAME.test(name)));
