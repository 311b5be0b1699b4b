/*
 * What a person decides on must be what will be run. Characters that have no picture, or that turn the direction of
 * what follows, could make a command read as another one: they are written out.
 */

const SPELLED = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** The text with invisible and direction-changing characters as `\u{…}`; line breaks and tabs stay as they are. */
export const visible = (text: string): string =>
  text.replace(SPELLED, (character) =>
    character === '\n' || character === '\t' ? character : `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
