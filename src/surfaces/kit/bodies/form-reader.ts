/**
 * Walks through the bytes of a multipart body part by part, as they come. It pulls: nothing is read from the client before
 * somebody asks for it, and beside the bounded heads and fields it holds no more than one chunk. The delimiter is searched
 * with the runtime's own byte search, so that a large file costs hardly more than a bare body.
 */

/** The body is not a form: `incomplete` when it ended early, `malformed` otherwise, `too_large` beyond a bound. */
export class FormError extends Error {
  readonly problem: 'incomplete' | 'malformed' | 'too_large'
  constructor(problem: FormError['problem'], message: string) {
    super(message)
    this.problem = problem
  }
}

const CR = 13
const EMPTY = Buffer.alloc(0)
const LINE_END = Buffer.from('\r\n')
const DELIMITER_START = Buffer.from('\r\n--')
const HEAD_END = Buffer.from('\r\n\r\n')
const CLOSING = '--'
// What a client may put between a delimiter and its line end.
const MAX_PADDING_BYTES = 1024

export class FormReader {
  readonly #chunks: AsyncIterator<Buffer>
  readonly #delimiter: Buffer
  /** Read, and not yet given out. Begins with a line end, so that the first delimiter looks like all others. */
  #held: Buffer = LINE_END

  constructor(chunks: AsyncIterator<Buffer>, boundary: string) {
    this.#chunks = chunks
    this.#delimiter = Buffer.from(`\r\n--${boundary}`)
  }

  /** Skips to the first delimiter. */
  async skipPreamble(maxBytes: number): Promise<void> {
    await this.#readUntil(this.#delimiter, maxBytes, 'what comes before the first part')
  }

  /** After a delimiter: the head of the part that begins, or null when the form ends here. */
  async nextHead(maxBytes: number): Promise<string | null> {
    while (this.#held.length < CLOSING.length) await this.#pull()
    if (this.#held.toString('latin1', 0, CLOSING.length) === CLOSING) {
      this.#held = this.#held.subarray(CLOSING.length)
      return null
    }
    const padding = await this.#readUntil(LINE_END, MAX_PADDING_BYTES, 'the line of a delimiter')
    if (padding.toString('latin1').trim() !== '') throw new FormError('malformed', 'a delimiter line is damaged')
    // The line end that was just read may be the first half of an empty head.
    this.#held = Buffer.concat([LINE_END, this.#held])
    const head = await this.#readUntil(HEAD_END, maxBytes, 'the head of a part')
    return head.toString('utf8').trim()
  }

  /** The whole body of a part, up to its delimiter. */
  readBody(maxBytes: number): Promise<Buffer> {
    return this.#readUntil(this.#delimiter, maxBytes, 'a field')
  }

  /** The body of a part as it comes. Ends at its delimiter. */
  async *streamBody(): AsyncGenerator<Buffer> {
    while (true) {
      const end = this.#findDelimiter()
      if (end >= 0) {
        const last = this.#held.subarray(0, end)
        this.#held = this.#held.subarray(end + this.#delimiter.length)
        if (last.length > 0) yield last
        return
      }
      const safe = this.#safeLength()
      const ready = this.#held.subarray(0, safe)
      this.#held = this.#held.subarray(safe)
      if (ready.length > 0) yield ready
      await this.#pull()
    }
  }

  /** Reads what follows the end of the form. */
  async skipEpilogue(maxBytes: number): Promise<void> {
    for (let seen = this.#held.length; ; ) {
      const { done, value } = await this.#chunks.next()
      if (done) return
      seen += value.length
      if (seen > maxBytes) throw new FormError('too_large', 'what comes after the last part is too large')
    }
  }

  /** Looks for the four bytes that every delimiter begins with: in binary content a short needle is found five times faster. */
  #findDelimiter(): number {
    const held = this.#held
    const rest = this.#delimiter.subarray(DELIMITER_START.length)
    for (let at = held.indexOf(DELIMITER_START); at >= 0; at = held.indexOf(DELIMITER_START, at + 1)) {
      const after = at + DELIMITER_START.length
      if (held.compare(rest, 0, rest.length, after, Math.min(after + rest.length, held.length)) === 0) return at
    }
    return -1
  }

  /** How much of what is held cannot be the beginning of a delimiter. */
  #safeLength(): number {
    const held = this.#held
    let from = Math.max(0, held.length - this.#delimiter.length + 1)
    for (from = held.indexOf(CR, from); from >= 0; from = held.indexOf(CR, from + 1)) {
      if (this.#delimiter.subarray(0, held.length - from).equals(held.subarray(from))) return from
    }
    return held.length
  }

  async #readUntil(needle: Buffer, maxBytes: number, what: string): Promise<Buffer> {
    // Where the search goes on after another chunk: what was searched already can only hold the needle's beginning.
    for (let from = 0; ; ) {
      const end = this.#held.indexOf(needle, from)
      if (end > maxBytes || (end < 0 && this.#held.length - needle.length > maxBytes))
        throw new FormError('too_large', `${what} has more than ${maxBytes} bytes`)
      if (end >= 0) {
        const found = this.#held.subarray(0, end)
        this.#held = this.#held.subarray(end + needle.length)
        return found
      }
      from = Math.max(0, this.#held.length - needle.length + 1)
      await this.#pull()
    }
  }

  async #pull(): Promise<void> {
    const { done, value } = await this.#chunks.next()
    if (done) throw new FormError('incomplete', 'the request ended before the form was complete')
    this.#held = this.#held.length === 0 ? value : Buffer.concat([this.#held, value])
  }

  /** To be called when nothing more will be read: releases the source and discards what it still sends. */
  close(): void {
    this.#held = EMPTY
    this.#chunks.return?.().catch(() => {})
  }
}
