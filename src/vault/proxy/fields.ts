/** Header fields in their order, a name as often as it came. */
export type Fields = readonly (readonly [name: string, value: string])[];

/** From Node's flat list. */
export function fieldsOf(raw: readonly string[]): Fields {
  const fields: [string, string][] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) fields.push([raw[i] ?? '', raw[i + 1] ?? '']);
  return fields;
}

export const flat = (fields: Fields): string[] => fields.flat();

export const valuesOf = (fields: Fields, name: string): string[] =>
  fields.filter(([one]) => one.toLowerCase() === name).map(([, value]) => value);

export const without = (fields: Fields, ...names: string[]): Fields =>
  fields.filter(([name]) => !names.includes(name.toLowerCase()));

const HOP_BY_HOP = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'expect', 'http2-settings'],
]);

/** Without what is between two neighbours only, and what `Connection` names as such. */
export function endToEnd(fields: Fields): Fields {
  const named = new Set(
    valuesOf(fields, 'connection').flatMap((value) => value.split(',').map((name) => name.trim().toLowerCase())),
  );
  return fields.filter(([name]) => !HOP_BY_HOP.has(name.toLowerCase()) && !named.has(name.toLowerCase()));
}
