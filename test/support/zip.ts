/** Names and unpacked sizes, in bytes, of the files in a zip archive, as its central directory lists them. */
export function zipEntries(archive: Buffer): Map<string, number> {
  const end = archive.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'));
  if (end < 0) throw new Error('This is no zip archive.');
  const entries = new Map<string, number>();
  let at = archive.readUInt32LE(end + 16);
  for (let n = archive.readUInt16LE(end + 10); n > 0; n--) {
    const nameLength = archive.readUInt16LE(at + 28);
    entries.set(archive.toString('utf8', at + 46, at + 46 + nameLength), archive.readUInt32LE(at + 24));
    at += 46 + nameLength + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  return entries;
}
