import type { ContentBlock } from '../protocol/content.ts';
import type { Masked } from '../protocol/record.ts';
import type { Output } from './guard.ts';
import type { Masking } from './patterns.ts';

/** The output with each of its texts masked, the whole of a shortened one too. The same parts where there is nothing. */
export function maskOutput(output: Output, mask: (text: string) => Masking): Output & { masked: Masked[] } {
  const found = new Map<string, Masked>();
  const masked = (text: string): string => {
    const done = mask(text);
    for (const one of done.masked) {
      const before = found.get(one.finding);
      // The same text may be in the preview and in the whole.
      found.set(one.finding, before && before.count > one.count ? before : one);
    }
    return done.text;
  };
  const content = output.content.map((block) => maskBlock(block, masked));
  const whole = output.whole && maskWhole(output.whole, masked);
  return { ...output, content, ...(whole ? { whole } : {}), masked: [...found.values()] };
}

function maskBlock(block: ContentBlock, mask: (text: string) => string): ContentBlock {
  if (block.type === 'text') return { ...block, text: mask(block.text) };
  if (block.type === 'search_result') {
    return { ...block, content: block.content.map((one) => ({ ...one, text: mask(one.text) })) };
  }
  return block;
}

/** Bytes that are text; anything else has no lines to look at. */
function maskWhole(whole: NonNullable<Output['whole']>, mask: (text: string) => string): NonNullable<Output['whole']> {
  if (!whole.media_type.startsWith('text/')) return whole;
  const before = Buffer.from(whole.bytes).toString('latin1');
  const after = mask(before);
  return after === before ? whole : { ...whole, bytes: Buffer.from(after, 'latin1') };
}
