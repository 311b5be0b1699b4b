import type { OpenRequest } from './sandbox.ts';

/**
 * A program's arguments and variables with `${NAME}` replaced by what the sandbox's way out calls NAME: a placeholder of
 * the session's vaults has another text in each session, so a definition can only name it. Other names stay as they are.
 */
export function filledIn(request: OpenRequest, own: Readonly<Record<string, string>>): OpenRequest {
  const fill = (text: string) =>
    text.replaceAll(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (whole, name: string) => own[name] ?? whole);
  const env = Object.entries(request.env ?? {}).map(([name, value]) => [name, fill(value)]);
  return { ...request, argv: request.argv.map(fill), env: { ...own, ...Object.fromEntries(env) } };
}
