import { z } from 'zod';

export const TextBlock = z.object({ type: z.literal('text'), text: z.string() });
export type TextBlock = z.infer<typeof TextBlock>;

const Base64Source = z.object({
  type: z.literal('base64'),
  media_type: z.string(),
  data: z.string(),
});
const UrlSource = z.object({ type: z.literal('url'), url: z.string() });
const FileSource = z.object({ type: z.literal('file'), file_id: z.string() });
const PlainTextSource = z.object({
  type: z.literal('text'),
  media_type: z.literal('text/plain'),
  data: z.string(),
});

export const ImageBlock = z.object({
  type: z.literal('image'),
  source: z.discriminatedUnion('type', [Base64Source, UrlSource, FileSource]),
});
export type ImageBlock = z.infer<typeof ImageBlock>;

export const DocumentBlock = z.object({
  type: z.literal('document'),
  source: z.discriminatedUnion('type', [Base64Source, UrlSource, FileSource, PlainTextSource]),
  title: z.string().nullish(),
  context: z.string().nullish(),
});
export type DocumentBlock = z.infer<typeof DocumentBlock>;

export const SearchResultBlock = z.object({
  type: z.literal('search_result'),
  source: z.string(),
  title: z.string(),
  content: z.array(TextBlock),
  citations: z.object({ enabled: z.boolean() }).optional(),
});
export type SearchResultBlock = z.infer<typeof SearchResultBlock>;

export const RedactedBlock = z.object({ type: z.literal('redacted') });

export const ContentBlock = z.discriminatedUnion('type', [
  TextBlock,
  ImageBlock,
  DocumentBlock,
  SearchResultBlock,
  RedactedBlock,
]);
export type ContentBlock = z.infer<typeof ContentBlock>;

export const text = (value: string): TextBlock => ({ type: 'text', text: value });

/** All text of some blocks, one line break between two; blocks without text are left out. */
export function plainText(blocks: readonly ContentBlock[] | undefined): string {
  const parts: string[] = [];
  for (const block of blocks ?? []) {
    if (block.type === 'text') parts.push(block.text);
    else if (block.type === 'search_result') parts.push(plainText(block.content));
    else if (block.type === 'document' && block.source.type === 'text') parts.push(block.source.data);
  }
  return parts.join('\n');
}
