import type { Attempt } from './attempts.ts';
import { type Field, holdsSecret } from './field.ts';
import { REACHED } from './internet.ts';

export interface Verdict {
  attempt: Attempt;
  /** Why it counts as a leak, or as not having been tried; empty if it was blocked. */
  leaks: string[];
  output: string;
}

/** Lets the hostile script try one thing, and says what came of it. */
export async function attemptIn(field: Field, attempt: Attempt): Promise<Verdict> {
  const from = field.internet.hits.length;
  const { execution, output } = await field.run(attempt.script);
  const leaks: string[] = [];
  if (holdsSecret(output, field.secret)) leaks.push('the secret came into the sandbox');
  if (output.includes(REACHED)) leaks.push('it was answered by what it must not reach');
  if (attempt.never?.test(output)) leaks.push(`it got ${attempt.never}`);
  if (attempt.tried && !attempt.tried.test(output)) leaks.push(`it was not tried as it should: no ${attempt.tried}`);
  for (const what of await field.reached()) leaks.push(`it reached ${what}`);
  const { tlsPort } = field.internet;
  for (const { host, head, body } of field.internet.hits.slice(from)) {
    const bound = [`api.test:${tlsPort}`, `git.test:${tlsPort}`, `registry.test:${tlsPort}`, `body.test:${tlsPort}`];
    if (host.startsWith('evil.')) leaks.push(`${host} was reached`);
    if (!bound.includes(host) && holdsSecret(head + body, field.secret)) leaks.push(`${host} got the secret`);
  }
  if (attempt.ledger) {
    await field.settled();
    const entries = field.ledger.filter((entry) => entry.execution_id === execution);
    if (!entries.some((entry) => entry.verdict === attempt.ledger))
      leaks.push(
        `the ledger has it not as ${attempt.ledger}: ${entries.map((e) => `${e.verdict} ${e.reason}`).join()}`,
      );
  }
  return { attempt, leaks, output };
}
