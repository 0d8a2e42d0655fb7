/**
 * Writes messages of Protocol Buffers (https://protobuf.dev/programming-guides/encoding/) into bytes that are there already. It makes no
 * objects and calls nothing outside of the language for short texts of plain letters, which is what spans consist of.
 */
export class ProtoWriter {
  /** Whoever gives the bytes sees to it that there is room. */
  bytes: Buffer
  at: number

  constructor(bytes: Buffer, at = 0) {
    this.bytes = bytes
    this.at = at
  }

  byte(value: number): void {
    this.bytes[this.at++] = value
  }

  /** A whole number from 0 to 2^53. */
  varint(value: number): void {
    let rest = value
    while (rest >= VARINT_STEP) {
      this.bytes[this.at++] = (rest % VARINT_STEP) | VARINT_MORE
      rest = Math.floor(rest / VARINT_STEP)
    }
    this.bytes[this.at++] = rest
  }

  copy(part: Uint8Array): void {
    const { bytes, at } = this
    for (let index = 0; index < part.length; index++) bytes[at + index] = part[index]!
    this.at = at + part.length
  }

  /** The field of a text: its tag, its length, its letters. */
  text(tag: number, text: string): void {
    this.byte(tag)
    const { bytes } = this
    const from = this.open()
    for (let index = 0; index < text.length; index++) {
      const letter = text.charCodeAt(index)
      if (letter > LAST_ASCII) {
        this.at = from + bytes.write(text, from)
        this.close(from)
        return
      }
      bytes[from + index] = letter
    }
    this.at = from + text.length
    this.close(from)
  }

  /** The field of an id that is given in hex digits. */
  id(tag: number, hex: string): void {
    const { bytes } = this
    this.byte(tag)
    this.byte(hex.length / 2)
    let { at } = this
    for (let index = 0; index < hex.length; index += 2)
      bytes[at++] = (DIGITS[hex.charCodeAt(index)]! << 4) | DIGITS[hex.charCodeAt(index + 1)]!
    this.at = at
  }

  /** The field of a time as 64-bit nanoseconds, which is given in milliseconds with fractions. */
  time(tag: number, ms: number): void {
    this.byte(tag)
    const micros = Math.floor(ms * 1000)
    // More digits than a double holds, so in two halves.
    const low = (micros % WORD) * 1000
    this.#word(low % WORD)
    this.#word(Math.floor(micros / WORD) * 1000 + Math.floor(low / WORD))
  }

  #word(value: number): void {
    const { bytes, at } = this
    bytes[at] = value
    bytes[at + 1] = value / 0x100
    bytes[at + 2] = value / 0x1_0000
    bytes[at + 3] = value / 0x100_0000
    this.at = at + 4
  }

  /** Leaves room for a length. What follows is counted by `close`, which wants what this returns. */
  open(): number {
    return ++this.at
  }

  close(from: number): void {
    const length = this.at - from
    if (length < VARINT_STEP) {
      this.bytes[from - 1] = length
      return
    }
    // A length of more than one byte moves what stands behind it.
    const more = length < VARINT_STEP ** 2 ? 1 : 2
    this.bytes.copyWithin(from + more, from, this.at)
    const end = this.at + more
    this.at = from - 1
    this.varint(length)
    this.at = end
  }
}

const VARINT_STEP = 128
const VARINT_MORE = 128
const LAST_ASCII = 127
const WORD = 2 ** 32

/** By the code of a hex digit, its value. */
const DIGITS = new Uint8Array(256)
for (const [value, digit] of [...'0123456789abcdef'].entries()) DIGITS[digit.charCodeAt(0)] = value
