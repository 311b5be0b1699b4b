import { z } from 'zod';
import { DroverError } from '../../protocol/errors.ts';
import { SessionId } from '../../protocol/ids.ts';
import type { LogRecord } from '../../protocol/record.ts';

/*
 * A session as one file: JSON lines, first a header, then the lines of the log, then its blobs, one a line:
 * {"blob":{"sha256":"…","media_type":"…","bytes":…,"base64":"…"}}
 */

/** Of the files this version writes. It reads those of this and every earlier one. */
export const EXPORT_VERSION = 1;

export const Header = z.object({
  drover_export: z.number().int().positive(),
  session_id: SessionId,
  title: z.string(),
  /** RFC 3339. */
  exported_at: z.string(),
  /** The last record. Who knows it from elsewhere can tell that nothing was cut off or made up. */
  head: z.object({ seq: z.number().int(), hash: z.string() }),
  /** The lines of the log, in bytes, from the byte after this line on; if they do not end in a newline, one follows. */
  log_bytes: z.number().int().nonnegative(),
  blobs: z.number().int().nonnegative(),
  /** What was taken out, or null: then the lines are those of the log, byte for byte. */
  redaction: z
    .object({
      what: z.literal('tool inputs and outputs'),
      /** So many records are not as they were. Each says so: see `RedactedRecord`. */
      records: z.number().int().nonnegative(),
      chain: z.string(),
    })
    .nullable(),
});
export type Header = z.infer<typeof Header>;

/** What the header of a redacted file says of its chain, for whoever reads it. */
export const CHAIN_NOTE =
  "A redacted record has a hash of its own; redacted.hash is the one it was written with, which the next record's prev names.";

/** A record some values of which were replaced. `hash` is of the line as it stands in the file. */
export interface RedactedRecord extends LogRecord {
  redacted?: { hash: string };
}

export class ExportFailed extends DroverError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('log', message, options);
  }
}

export class NoExport extends DroverError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('log', message, options);
  }
}
