/**
 * Does a file begin like a safetensors file: eight bytes of little-endian length, then that much JSON which names tensors with
 * dtype, shape and data_offsets. The check runs while the bytes pass by, so that a wrong file is refused at its beginning.
 * A pickle, which runs code when it is loaded, never passes.
 */
import { ServiceError } from '../../errors.ts'

export const HEADER_MAX_BYTES = 100 * 1024 * 1024
const LENGTH_BYTES = 8
const BRACE = 0x7b

/** Yields `source` unchanged; throws `invalid_field` as soon as the header is known to be wrong. */
export async function* checkSafetensors(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const header = createHeaderCheck()
  for await (const chunk of source) {
    header.push(chunk)
    yield chunk
  }
  header.end()
}

/** Reads no more of `source` than its header; throws `invalid_field` when that is wrong. */
export async function checkSafetensorsStart(source: AsyncIterable<Uint8Array>): Promise<void> {
  const header = createHeaderCheck()
  for await (const chunk of source) if (header.push(chunk)) return
  header.end()
}

interface HeaderCheck {
  /** True once the whole header has been seen and is right. */
  push(chunk: Uint8Array): boolean
  end(): void
}

function createHeaderCheck(): HeaderCheck {
  let seen: Buffer[] = []
  let seenBytes = 0
  let headerBytes: number | null = null
  let isDone = false

  function readLength(): void {
    const start = Buffer.concat(seen)
    seen = [start]
    const length = start.readBigUInt64LE(0)
    if (length < 2n || length > BigInt(HEADER_MAX_BYTES)) throw refuse('its header length is not possible')
    headerBytes = Number(length)
  }

  return {
    push(chunk) {
      if (isDone) return true
      // A copy: the source may use its buffer again.
      seen.push(Buffer.from(chunk))
      seenBytes += chunk.length
      if (headerBytes === null && seenBytes >= LENGTH_BYTES) readLength()
      if (headerBytes === null) return false
      // Random bytes seldom begin like an object; no need to gather up to the claimed length first.
      if (seenBytes > LENGTH_BYTES && byteAt(seen, LENGTH_BYTES) !== BRACE) throw refuse('its header is not JSON')
      if (seenBytes < LENGTH_BYTES + headerBytes) return false
      checkHeader(Buffer.concat(seen).subarray(LENGTH_BYTES, LENGTH_BYTES + headerBytes))
      isDone = true
      seen = []
      return true
    },
    end() {
      if (!isDone) throw refuse('it ends before its header does')
    },
  }
}

function byteAt(pieces: readonly Buffer[], index: number): number | undefined {
  let offset = index
  for (const piece of pieces) {
    if (offset < piece.length) return piece[offset]
    offset -= piece.length
  }
  return undefined
}

/**
 * A header that is there as a whole, and whether it fits its file: the tensors that it names must fill the rest, `dataBytes`,
 * without a gap and without sharing a byte.
 */
export function checkSafetensorsHeader(bytes: Buffer, dataBytes: number): void {
  const spans = checkHeader(bytes).sort(([a, b], [c, d]) => a - c || b - d)
  let end = 0
  for (const [begin, next] of spans) {
    if (begin !== end) throw refuse('its tensors leave gaps or overlap')
    end = next
  }
  if (end !== dataBytes) throw refuse('its header describes another number of bytes than the file has')
}

type Span = readonly [begin: number, end: number]

/** The places of its tensors. */
function checkHeader(bytes: Buffer): Span[] {
  let header: unknown
  try {
    header = JSON.parse(bytes.toString('utf8'))
  } catch {
    throw refuse('its header is not JSON')
  }
  if (!isRecord(header)) throw refuse('its header is not an object')
  const spans: Span[] = []
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__') {
      if (!isRecord(entry)) throw refuse('its __metadata__ is not an object')
    } else if (!isTensorEntry(entry)) throw refuse('an entry of its header lacks dtype, shape or data_offsets')
    else spans.push(entry.data_offsets)
  }
  return spans
}

function isTensorEntry(entry: unknown): entry is { readonly data_offsets: Span } {
  if (!isRecord(entry)) return false
  const { dtype, shape, data_offsets: offsets } = entry
  return typeof dtype === 'string' && isSizes(shape) && isSizes(offsets) && isSpan(offsets)
}

function isSizes(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0)
}

function isSpan([begin, end, ...more]: readonly number[]): boolean {
  return begin !== undefined && end !== undefined && more.length === 0 && begin <= end
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function refuse(problem: string): ServiceError {
  return new ServiceError('invalid_field', `the file is not a safetensors file: ${problem}`, {
    details: { field: 'file' },
  })
}
