import type { EnvironmentDefinition, FieldProblem } from './environment-rules.ts';

/*
 * What the page of the environment form and the extension host say to each other. The page knows no rules: what it has
 * is sent, and what is wrong with it comes back by field.
 */

export type FormHostMessage =
  /** What the form begins with; `existing`: its kind can't be changed any more. */
  | { type: 'show'; definition: EnvironmentDefinition; existing: boolean; folder: string }
  | { type: 'problems'; problems: readonly FieldProblem[] };

/** `definition` is whatever the person has typed: it may be no valid one. */
export type FormPageMessage =
  | { type: 'ready' }
  | { type: 'check'; definition: unknown }
  | { type: 'save'; definition: unknown }
  | { type: 'edit_json'; definition: unknown }
  | { type: 'cancel' };
