import type { z } from 'zod';
import type { Desk } from './desk.ts';
import type { Outcome, Recovery, ToolContext, ToolSpec } from './tools.ts';

/** What the harness gives a call, and what the person's editor knows of the files. */
export interface Acting extends ToolContext {
  desk: Desk;
}

/** One tool: what the model is told, and what a call does. `execute` may throw; the toolbox makes an outcome of it. */
export interface Tool<Schema extends z.ZodObject = z.ZodObject> {
  spec: ToolSpec;
  schema: Schema;
  /** A call that failed half-way may have left something changed. */
  changes: boolean;
  execute(input: z.infer<Schema>, context: Acting): Promise<Outcome>;
  /** Only where more can be said than "its program ended". */
  recover?(input: z.infer<Schema>, context: Acting): Promise<Recovery>;
}

/** A tool with its input type hidden: the toolbox hands it only what its own schema has parsed. */
export interface AnyTool {
  spec: ToolSpec;
  schema: z.ZodObject;
  changes: boolean;
  execute(input: unknown, context: Acting): Promise<Outcome>;
  recover?(input: unknown, context: Acting): Promise<Recovery>;
}

export function erased<Schema extends z.ZodObject>(tool: Tool<Schema>): AnyTool {
  const { recover } = tool;
  return {
    spec: tool.spec,
    schema: tool.schema,
    changes: tool.changes,
    execute: (input, context) => tool.execute(tool.schema.parse(input), context),
    ...(recover ? { recover: (input, context) => recover(tool.schema.parse(input), context) } : {}),
  };
}

/** The value of a text field for a summary: one line, not too long. */
export function oneLine(value: unknown, limit = 200): string {
  const line = String(value ?? '')
    .trim()
    .replaceAll(/\s+/g, ' ');
  return line.length > limit ? `${line.slice(0, limit - 1)}…` : line;
}
