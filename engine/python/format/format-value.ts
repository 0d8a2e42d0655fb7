/** `format(value, spec)` for any value: texts here, ints and floats below. */

import { formatPythonNumber, toPythonFloat } from '../../../lib/python/numbers.ts'
import { NodeError } from '../../node/node-error.ts'
import { inPython, type PyValue, pyStr, pyTypeName } from '../python-value.ts'
import { pyHead } from '../text-methods.ts'
import { fixedDigits, scientificDigits } from './float-digits.ts'
import { type FormatSpec, readFormatSpec, unknownType } from './format-spec.ts'
import { layOutNumber, type NumberParts, pad } from './number-layout.ts'

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
