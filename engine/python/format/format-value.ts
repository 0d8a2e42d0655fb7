/** `format(value, spec)` for any value: texts here, ints and floats below. */
import { divideHalfToEven, formatPythonNumber, toFraction, toPythonFloat } from '../../../lib/python/values.ts'
import { NodeError } from '../../node/node-error.ts'
import { inPython, type PyValue, pyStr, pyTypeName } from '../python-value.ts'
import { refuseLongText } from '../text-limit.ts'
import { pyHead } from '../text-methods.ts'
import { type FormatSpec, readFormatSpec, unknownType } from './format-spec.ts'

// Decimal digits of a float, rounded half to even on the exact value of the double, to any number of places. JavaScript's
// own toFixed and toExponential round halves up and stop at a hundred digits.

const TEN = 10n

/** `value` times ten to the `places`, rounded to a whole number. */
function scaled(value: number, places: number): bigint {
  const { numerator, denominator } = toFraction(value)
  return places >= 0
    ? divideHalfToEven(numerator * TEN ** BigInt(places), denominator)
    : divideHalfToEven(numerator, denominator * TEN ** BigInt(-places))
}

// The smallest double ends after this many decimal places: all that follow are zeros.
const MOST_PLACES = 1074

/** `12.345` with two places: `12.34`. */
function fixedDigits(value: number, places: number): string {
  const real = Math.min(places, MOST_PLACES)
  const digits = scaled(value, real)
    .toString()
    .padStart(real + 1, '0')
  const whole = digits.slice(0, digits.length - real)
  return places === 0 ? whole : `${whole}.${digits.slice(digits.length - real).padEnd(places, '0')}`
}

interface Scientific {
  /** One digit before the point, the others after it. */
  readonly digits: string
  readonly exponent: number
}

/** `places` digits after the first one. */
function scientificDigits(value: number, places: number): Scientific {
  if (value === 0) return { digits: '0'.repeat(places + 1), exponent: 0 }
  // The shortest text of a double may have been rounded up to a power of ten it does not reach.
  const guess = Number(value.toExponential().split('e')[1])
  const real = Math.min(places, MOST_PLACES)
  for (const exponent of [guess - 1, guess, guess + 1]) {
    const digits = scaled(value, real - exponent).toString()
    if (digits.length === real + 1) return { digits: digits.padEnd(places + 1, '0'), exponent }
  }
  throw new RangeError('a float without digits')
}

// Sign, digits, separators and padding of a number, put together.

interface NumberParts {
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

function layOutNumber(parts: NumberParts, spec: FormatSpec): string {
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
function pad(text: string, spec: FormatSpec): string {
  refuseLongText(spec.width + text.length)
  const room = Math.max(0, spec.width - Array.from(text).length)
  const before = { '<': 0, '>': room, '=': room, '^': Math.floor(room / 2) }[spec.align]
  return spec.fill.repeat(before) + text + spec.fill.repeat(room - before)
}

export function formatValue(value: PyValue, spec: string): string {
  if (spec === '') return pyStr(value)
  if (typeof value === 'string') return formatText(value, spec)
  if (typeof value === 'boolean') return formatInt(BigInt(value), spec, 'bool')
  if (typeof value === 'bigint') return formatInt(value, spec, 'int')
  if (typeof value === 'number') return formatFloat(value, spec)
  throw new NodeError('TypeError', `unsupported format string passed to ${pyTypeName(value)}.__format__`)
}

function formatText(text: string, specText: string): string {
  const spec = readFormatSpec(specText, { type: 's', align: '<', typeName: 'str' })
  if (spec.type !== 's') throw unknownType(spec.type, 'str')
  const refused = refusedForText(spec)
  if (refused !== null) throw new NodeError('ValueError', `${refused} not allowed in string format specifier`)
  return pad(spec.precision === null ? text : pyHead(text, spec.precision), spec)
}

function refusedForText({ sign, isZeroPlain, isAlternate, align }: FormatSpec): string | null {
  if (sign !== null) return sign === ' ' ? 'Space' : 'Sign'
  if (isZeroPlain) return 'Negative zero coercion (z)'
  if (isAlternate) return 'Alternate form (#)'
  return align === '=' ? "'=' alignment" : null
}

const FLOAT_TYPES = 'eEfFgG%'
const DEFAULT_PRECISION = 6
const MOST_DIGITS = 1100
const MAX_PRECISION = 100_000
const LARGEST_C_INT = 2 ** 31 - 1
const INT_BASES: Readonly<Record<string, { base: number; prefix: string; groupSize: number }>> = {
  d: { base: 10, prefix: '', groupSize: 3 },
  n: { base: 10, prefix: '', groupSize: 3 },
  b: { base: 2, prefix: '0b', groupSize: 4 },
  o: { base: 8, prefix: '0o', groupSize: 4 },
  x: { base: 16, prefix: '0x', groupSize: 4 },
  X: { base: 16, prefix: '0X', groupSize: 4 },
}

/** `typeName` is `bool` for truth values, which are formatted as ints. */
function formatInt(value: bigint, text: string, typeName: string): string {
  const spec = readFormatSpec(text, { type: 'd', align: '>', typeName })
  if (FLOAT_TYPES.includes(spec.type))
    return layOutFloat(
      inPython(() => toPythonFloat(value)),
      spec,
    )
  const isCharacter = spec.type === 'c'
  if (!isCharacter && !Object.hasOwn(INT_BASES, spec.type)) throw unknownType(spec.type, typeName)
  refuseForInt(spec)
  if (isCharacter) return pad(toCharacter(value, spec), spec)
  const { base, prefix, groupSize } = INT_BASES[spec.type]
  const digits = (value < 0n ? -value : value).toString(base)
  return layOutNumber(
    {
      isNegative: value < 0n,
      prefix: spec.isAlternate ? prefix : '',
      whole: spec.type === 'X' ? digits.toUpperCase() : digits,
      rest: '',
      groupSize,
    },
    spec,
  )
}

function refuseForInt({ precision, isZeroPlain }: FormatSpec): void {
  if (precision !== null) throw new NodeError('ValueError', 'Precision not allowed in integer format specifier')
  if (isZeroPlain) {
    throw new NodeError('ValueError', 'Negative zero coercion (z) not allowed in integer format specifier')
  }
}

function toCharacter(value: bigint, { sign, isAlternate }: FormatSpec): string {
  if (sign !== null) throw new NodeError('ValueError', "Sign not allowed with integer format specifier 'c'")
  if (isAlternate) {
    throw new NodeError('ValueError', "Alternate form (#) not allowed with integer format specifier 'c'")
  }
  if (value < 0n || value > 0x10ffffn) throw new NodeError('OverflowError', '%c arg not in range(0x110000)')
  return String.fromCodePoint(Number(value))
}

function formatFloat(value: number, text: string): string {
  const spec = readFormatSpec(text, { type: '', align: '>', typeName: 'float' })
  if (spec.type !== '' && spec.type !== 'n' && !FLOAT_TYPES.includes(spec.type)) throw unknownType(spec.type, 'float')
  return layOutFloat(value, spec)
}

function layOutFloat(value: number, spec: FormatSpec): string {
  const shown = spec.type === '%' ? value * 100 : value
  const isMinus = shown < 0 || Object.is(shown, -0)
  const text = toText(Math.abs(shown), spec) + (spec.type === '%' ? '%' : '')
  // After rounding, not before: -0.4 without decimals is a zero too.
  const isZero = Number.isFinite(shown) && !/[1-9]/.test(text.split(/e/i)[0])
  const isNegative = isMinus && !(spec.isZeroPlain && isZero)
  return layOutNumber({ isNegative, prefix: '', ...splitDigits(text), groupSize: 3 }, spec)
}

function splitDigits(text: string): Pick<NumberParts, 'whole' | 'rest'> {
  const whole = /^\d*/.exec(text)?.[0] ?? ''
  return { whole, rest: text.slice(whole.length) }
}

/** Digits of a float without its sign. */
function toText(value: number, spec: FormatSpec): string {
  const isUpper = spec.type === 'E' || spec.type === 'F' || spec.type === 'G'
  if ((spec.precision ?? 0) > LARGEST_C_INT) throw new NodeError('ValueError', 'precision too big')
  const text = Number.isFinite(value) ? toDigits(value, spec) : formatPythonNumber(value)
  return isUpper ? text.toUpperCase() : text
}

function toDigits(value: number, spec: FormatSpec): string {
  const type = spec.type.toLowerCase()
  if (type === '' && spec.precision === null)
    return spec.isAlternate ? withPoint(formatPythonNumber(value)) : formatPythonNumber(value)
  const isGeneral = type === '' || type === 'g' || type === 'n'
  const wanted = spec.precision ?? DEFAULT_PRECISION
  // Where trailing zeros are dropped, more digits than a double has change nothing.
  const precision = isGeneral && !spec.isAlternate ? Math.min(wanted, MOST_DIGITS) : wanted
  if (precision > MAX_PRECISION) throw new NodeError('MemoryError', `a precision of ${precision} is too large`)
  if (type === 'f' || type === '%') return withPoint(fixedDigits(value, precision), spec.isAlternate)
  if (type === 'e') {
    const { digits, exponent } = scientificDigits(value, precision)
    return scientific(digits, exponent, spec.isAlternate)
  }
  return general(value, Math.max(1, precision), { keepsZeros: spec.isAlternate, needsDecimal: type === '' })
}

function withPoint(text: string, isWanted = true): string {
  return !isWanted || text.includes('.') ? text : text.replace(/^\d+/, '$&.')
}

function scientific(digits: string, exponent: number, keepsPoint: boolean): string {
  const decimals = digits.slice(1)
  const point = decimals !== '' || keepsPoint ? '.' : ''
  const sign = exponent < 0 ? '-' : '+'
  return `${digits[0]}${point}${decimals}e${sign}${String(Math.abs(exponent)).padStart(2, '0')}`
}

/** Fixed or scientific, whichever suits the size; without trailing zeros. `needsDecimal`: a float shows that it is one. */
function general(
  value: number,
  precision: number,
  { keepsZeros, needsDecimal }: { keepsZeros: boolean; needsDecimal: boolean },
): string {
  const { digits, exponent } = scientificDigits(value, precision - 1)
  const kept = keepsZeros ? digits : digits.replace(/(?<=^.+)0+$/, '')
  const isScientific = exponent < -4 || exponent >= (needsDecimal ? precision - 1 : precision)
  if (isScientific) return scientific(kept, exponent, keepsZeros)
  const text = placePoint(kept, exponent)
  if (text.includes('.')) return text
  if (keepsZeros) return `${text}.`
  return needsDecimal ? `${text}.0` : text
}

/** The digits with the point behind the one that `exponent` names. */
function placePoint(digits: string, exponent: number): string {
  if (exponent < 0) return `0.${'0'.repeat(-exponent - 1)}${digits}`
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0')
  const decimals = digits.slice(exponent + 1)
  return decimals === '' ? whole : `${whole}.${decimals}`
}
