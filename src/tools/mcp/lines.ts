const NEWLINE = 0x0a;

/** A line is longer than is taken. */
export class LineTooLong extends Error {}

/** Puts bytes that come in pieces together into lines, without copying what is not complete over and over. */
export class Lines {
  readonly #max: number;
  #parts: Buffer[] = [];
  #bytes = 0;

  /** `max`: bytes of one line. */
  constructor(max: number) {
    this.#max = max;
  }

  /** The lines that this piece completes, without their ends. Throws `LineTooLong`; nothing can be read from then on. */
  push(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      this.#add(chunk.subarray(from, at));
      lines.push(Buffer.concat(this.#parts));
      this.#parts = [];
      this.#bytes = 0;
      from = at + 1;
    }
    this.#add(chunk.subarray(from));
    return lines;
  }

  #add(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#max) throw new LineTooLong();
    if (part.length > 0) this.#parts.push(part);
  }
}
