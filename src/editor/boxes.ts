import * as vscode from 'vscode';
import { type Credential, CredentialAuth } from '../protocol/vault.ts';
import { type SecretValues, valueFields, valueProblem } from '../vault/values.ts';

/* VS Code's own boxes, checked as they are typed. Each returns undefined if the person changed their mind. */

export interface Question {
  title: string;
  prompt: string;
  placeHolder?: string;
  /** What stands there already. */
  value?: string;
  /** What is wrong with what was typed, in a sentence. */
  problem: (typed: string) => string | undefined;
  /** True: nothing is an answer, too. */
  optional?: boolean;
}

export async function ask({ problem, optional = false, ...box }: Question): Promise<string | undefined> {
  const typed = await vscode.window.showInputBox({
    ...box,
    ignoreFocusOut: true,
    validateInput: (text) => (text.trim() ? problem(text.trim()) : undefined),
  });
  const answer = typed?.trim();
  return optional ? answer : answer || undefined;
}

/** Each value of a credential, in password boxes: from there to the vault, no page of ours sees it. */
export async function askForValues(auth: Credential['auth']): Promise<SecretValues | undefined> {
  const values: Record<string, string> = {};
  for (const { name, label } of valueFields(auth)) {
    const value = await vscode.window.showInputBox({
      title: `Drover: ${label}`,
      password: true,
      ignoreFocusOut: true,
      prompt: `Goes into VS Code’s secret storage and is never shown again. ${whoGetsWhat(auth)}`,
      validateInput: (typed) => (typed ? valueProblem(auth, name, typed.trim()) : undefined),
    });
    const trimmed = value?.trim();
    if (!trimmed) return undefined;
    values[name] = trimmed;
  }
  return values;
}

const whoGetsWhat = (auth: Credential['auth']): string =>
  'mcp_server_url' in auth ? 'It goes to that server alone.' : 'The sandbox gets a placeholder.';

export const authProblem = (auth: object, path: readonly string[]): string | undefined =>
  problemOf(CredentialAuth, auth, path);

interface Checks {
  safeParse(value: unknown): { error?: { issues: { path: PropertyKey[]; message: string }[] } | undefined };
}

/** What is wrong below `path`, if anything; what has not been asked for yet does not matter. */
export function problemOf(schema: Checks, value: unknown, path: readonly string[]): string | undefined {
  const issues = schema.safeParse(value).error?.issues ?? [];
  return issues.find((issue) => path.every((name, index) => issue.path[index] === name))?.message;
}
