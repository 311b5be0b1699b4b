import { z } from 'zod';

/**
 * "Always allow this in this folder": kept in the catalog, and taken into each session when it is made.
 * Without `input_sha256` it covers every call of the tool; a shell command is only ever covered word for word.
 */
export const Rule = z.object({
  id: z.string().min(1),
  type: z.literal('rule'),
  tool: z.string().min(1),
  /** SHA-256, hex, of the one input it covers, as canonical JSON. */
  input_sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
  /** What a person saw when they allowed it, such as the command. */
  name: z.string().min(1),
  created_at: z.string(),
  archived_at: z.string().nullable(),
});
export type Rule = z.infer<typeof Rule>;
