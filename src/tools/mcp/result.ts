import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { type ContentBlock, text } from '../../protocol/content.ts';
import { capText } from '../cap.ts';
import { knownMedia, sizeWords } from '../media.ts';
import { showMedia } from '../show-media.ts';
import type { Outcome } from '../tools.ts';

/** Bytes of text the model gets of one result; the whole is kept beside the log. */
const SHOWN = 100 * 1024;
/** Images and documents of one result that are shown. */
const MOST_MEDIA = 20;

type Block = CallToolResult['content'][number];
type Resource = Extract<Block, { type: 'resource' }>['resource'];

/** A server's result as the call's outcome: its blocks as ours, text capped, what can't be shown named. */
export function outcomeOf(result: CallToolResult): Outcome {
  let media = 0;
  const blocks = result.content.flatMap((block) => {
    const shown = shownBlock(block);
    const more = shown.filter((one) => one.type !== 'text').length;
    if (more > 0 && media + more > MOST_MEDIA) return [text('[One more image or document, not shown.]')];
    media += more;
    return shown;
  });
  const structured = structuredText(result, blocks);
  if (structured !== undefined) blocks.push(text(structured));
  return { kind: result.isError ? 'failed' : 'ok', ...capped(blocks) };
}

/**
 * Servers should give structured content as text too, and most do, laid out in their own way: then it is not said twice.
 */
function structuredText(result: CallToolResult, blocks: readonly ContentBlock[]): string | undefined {
  if (result.structuredContent === undefined) return undefined;
  const same = JSON.stringify(result.structuredContent);
  const said = blocks.some((block) => block.type === 'text' && compact(block.text) === same);
  return said ? undefined : JSON.stringify(result.structuredContent, null, 2);
}

function compact(json: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(json));
  } catch {
    return undefined;
  }
}

function shownBlock(block: Block): ContentBlock[] {
  switch (block.type) {
    case 'text':
      return [text(block.text)];
    case 'image':
      return binary('An image', block.data, block.mimeType);
    case 'audio':
      return [text(`[Audio, ${block.mimeType}, ${sizeWords(bytesOf(block.data).length)}: it can't be shown.]`)];
    case 'resource':
      return resourceBlocks(block.resource);
    case 'resource_link':
      return [text(`[${[block.title ?? block.name, block.uri, block.description].filter(Boolean).join(': ')}]`)];
    default:
      return [text('[A block of a kind that Drover does not know.]')];
  }
}

function resourceBlocks(resource: Resource): ContentBlock[] {
  if ('text' in resource) return [text(`[${resource.uri}]\n${resource.text}`)];
  return binary(resource.uri, resource.blob, resource.mimeType);
}

/** What the bytes are is read from them: a server's word for it is only used where they say nothing. */
function binary(name: string, base64: string, mimeType: string | undefined): ContentBlock[] {
  const bytes = bytesOf(base64);
  const media = knownMedia(bytes);
  if (media?.block) return showMedia(name, { ...media, block: media.block }, bytes).content;
  return [
    text(`[${name}: ${sizeWords(bytes.length)} of ${media?.media_type ?? mimeType ?? 'binary data'}, not shown.]`),
  ];
}

const bytesOf = (base64: string): Buffer => Buffer.from(base64, 'base64');

/** All text together is held to one limit, each block getting its share of it; the whole is kept. */
function capped(blocks: readonly ContentBlock[]): Pick<Outcome, 'content' | 'whole'> {
  const texts = blocks.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  const whole = texts.join('\n');
  if (capText(whole, SHOWN).removed === 0) return { content: [...blocks] };
  const shown = text(capText(whole, SHOWN).text);
  const others = blocks.filter((block) => block.type !== 'text');
  const bytes = new TextEncoder().encode(whole);
  return { content: [shown, ...others], whole: { media_type: 'text/plain; charset=utf-8', bytes } };
}
