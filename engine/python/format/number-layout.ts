/** Sign, digits, separators and padding of a number, put together. */
import { refuseLongText } from '../text-limit.ts'
import type { FormatSpec } from './format-spec.ts'

export interface NumberParts {
  readonly isNegative: boolean
  /** `0x` and the like. */
  readonly prefix: string
  /** The digits before the point: those that are grouped. */
  readonly whole: string
  /** Point, decimals, exponent, percent sign. */
  readonly rest: string
  readonly groupSize: number
}

function signOf(isNegative: boolean, sign: string | null): string {
  if (isNegative) return '-'
  return sign === '+' || sign === ' ' ? sign : ''
}

/** Puts separators between groups, after filling up with zeros to `minWidth`; a group is never begun with a separator. */
function group(digits: string, { size, separator, minWidth }: { size: number; separator: string; minWidth: number }) {
  const groups: string[] = []
  let left = digits
  let room = minWidth
  for (;;) {
    const length = Math.min(size, Math.max(left.length, room, 1))
    const taken = left.slice(Math.max(0, left.length - length))
    groups.unshift(taken.padStart(length, '0'))
    left = left.slice(0, left.length - taken.length)
    room -= length
    if (left === '' && room <= 0) return groups.join(separator)
    room -= separator.length
  }
}

export function layOutNumber(parts: NumberParts, spec: FormatSpec): string {
  refuseLongText(spec.width + parts.whole.length + parts.rest.length)
  const sign = signOf(parts.isNegative, spec.sign)
  const others = sign.length + parts.prefix.length + Array.from(parts.rest).length
  const minWidth = spec.fill === '0' && spec.align === '=' ? Math.max(0, spec.width - others) : 0
  // `inf` has no digits to group; zeros before it are padding.
  const grouped =
    spec.grouping === null || parts.whole === ''
      ? parts.whole.padStart(minWidth, '0')
      : group(parts.whole, { size: parts.groupSize, separator: spec.grouping, minWidth })
  const body = grouped + parts.rest
  const head = sign + parts.prefix
  if (spec.align !== '=') return pad(head + body, spec)
  return head + fillOf(Array.from(head + body).length, spec) + body
}

const fillOf = (length: number, { fill, width }: FormatSpec) => fill.repeat(Math.max(0, width - length))

/** Pads to the width; `=`, which only numbers know, counts as `>`. */
export function pad(text: string, spec: FormatSpec): string {
  refuseLongText(spec.width + text.length)
  const room = Math.max(0, spec.width - Array.from(text).length)
  const before = { '<': 0, '>': room, '=': room, '^': Math.floor(room / 2) }[spec.align]
  return spec.fill.repeat(before) + text + spec.fill.repeat(room - before)
}
