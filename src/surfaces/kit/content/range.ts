/** The `Range` header for one resource of known size, as RFC 9110 section 14 has it. Pure. */
interface ByteSpan {
  readonly start: number
  /** Inclusive. */
  readonly end: number
}

type RangeAnswer =
  | { readonly kind: 'whole' }
  | { readonly kind: 'part'; readonly span: ByteSpan }
  | { readonly kind: 'unsatisfiable' }

const WHOLE: RangeAnswer = { kind: 'whole' }
const UNSATISFIABLE: RangeAnswer = { kind: 'unsatisfiable' }
const SINGLE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i

/**
 * A header that is malformed, has another unit or several ranges is ignored, as the RFC allows: the whole content is always
 * a correct answer. Only a well-formed range that touches no byte is unsatisfiable.
 */
export function readRange(header: string | undefined, sizeBytes: number): RangeAnswer {
  const match = header === undefined ? null : SINGLE.exec(header)
  if (match === null) return WHOLE
  const [, first = '', last = ''] = match
  if (first === '') return last === '' ? WHOLE : readSuffix(Number(last), sizeBytes)
  const start = Number(first)
  const end = last === '' ? Number.POSITIVE_INFINITY : Number(last)
  if (end < start) return WHOLE
  return start < sizeBytes ? part(start, Math.min(end, sizeBytes - 1)) : UNSATISFIABLE
}

function readSuffix(length: number, sizeBytes: number): RangeAnswer {
  if (length === 0 || sizeBytes === 0) return UNSATISFIABLE
  return part(Math.max(0, sizeBytes - length), sizeBytes - 1)
}

function part(start: number, end: number): RangeAnswer {
  return { kind: 'part', span: { start, end } }
}
