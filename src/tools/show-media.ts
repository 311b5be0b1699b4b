import { imageSize } from './image-size.ts';
import { type Media, type Showable, sizeWords } from './media.ts';
import { failed, ok } from './outcomes.ts';
import type { Outcome } from './tools.ts';

/** Bytes. With base64's third on top an image stays below the API's 5 MB, and a few documents below its 32 MB a request. */
export const MEDIA_CAPS = { image: 3_500_000, document: 6_000_000 } as const;
/** Pixels on a side: more is refused by the API. */
const MAX_SIDE = 8000;
/** The API's limit for a document. */
const MAX_PAGES = 100;

/** Shows an image or a document to the model. `bytes` is the whole file. */
export function showMedia(path: string, media: Showable, bytes: Uint8Array): Outcome {
  const problem = media.block === 'image' ? imageProblem(media, bytes) : documentProblem(bytes);
  if (problem) return failed(`${path} is ${media.name}, but ${problem}, so it is not shown.`);
  const source = {
    type: 'base64' as const,
    media_type: media.media_type,
    data: Buffer.from(bytes).toString('base64'),
  };
  return ok([media.block === 'image' ? { type: 'image', source } : { type: 'document', source, title: path }]);
}

/** Why a file is not shown, in words for the model. */
export function notShown(path: string, media: Media, size: number): Outcome {
  if (media.block === undefined)
    return failed(
      `${path} is ${media.name} of ${sizeWords(size)}, not text, so it is not shown. Use bash with a program that understands it.`,
    );
  const what = media.block === 'image' ? 'images' : 'documents';
  const cap = sizeWords(MEDIA_CAPS[media.block]);
  return failed(`${path} is ${media.name} of ${sizeWords(size)}; ${what} over ${cap} can't be shown.`);
}

function imageProblem(media: Media, bytes: Uint8Array): string | undefined {
  const size = imageSize(bytes, media.media_type);
  if (!size) return 'a damaged one';
  if (Math.max(size.width, size.height) <= MAX_SIDE) return undefined;
  return `its ${size.width} × ${size.height} pixels are more than the model takes (${MAX_SIDE} on a side)`;
}

function documentProblem(bytes: Uint8Array): string | undefined {
  const text = Buffer.from(bytes).toString('latin1');
  if (!/%%EOF\s*$/.test(text.slice(-2048))) return 'its end is missing';
  if (/\/Encrypt\s+\d+\s+\d+\s+R/.test(text)) return 'it is encrypted';
  // Pages in compressed streams are not counted: then the API has the last word.
  const pages = text.match(/\/Type\s*\/Page(?![A-Za-z])/g)?.length ?? 0;
  return pages > MAX_PAGES ? `its ${pages} pages are more than the model takes (${MAX_PAGES})` : undefined;
}
