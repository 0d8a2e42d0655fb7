/**
 * Python's built-in conversions on losslessly parsed JSON: `int()`, `float()`, `bool()`, `str()`, `repr()`, `==` and
 * `json.dumps`. JSON's `1` is a Python int and `1.0` a float, whatever JavaScript would make of them. Pure; failures are
 * PythonErrors with Python's own words.
 */
import { isJsonObject, type JsonObject, type JsonValue, NumberText } from '../json/lossless-json.ts'
import { pythonReprText, readNumberCharacters } from './text.ts'

const INTEGER_TEXT = /^-?\d+$/
// From here on JavaScript prints whole numbers with an exponent, so such a `number` was written as a float.
const FIRST_EXPONENT_FORM = 1e21

/** The int or float a JSON value is, or null when it is none; see `toNumeric` for booleans. */
export function toPythonNumber(value: JsonValue): PythonNumber | null {
  if (typeof value === 'bigint') return value
  if (value instanceof NumberText) return INTEGER_TEXT.test(value.text) ? BigInt(value.text) : value.value
  if (typeof value !== 'number') return null
  if (!Number.isInteger(value) || Math.abs(value) >= FIRST_EXPONENT_FORM || Object.is(value, -0)) return value
  // Beyond 2^53 the digits as printed are the value that was written, not the double's exact one.
  return BigInt(Number.isSafeInteger(value) ? value : value.toString())
}

/** Like `toPythonNumber`, with True and False as 1 and 0: Python's bool is an int. */
export function toNumeric(value: JsonValue): PythonNumber | null {
  return typeof value === 'boolean' ? BigInt(value) : toPythonNumber(value)
}

/** Python's int or float as a JSON value that keeps its type: 4.0 stays `4.0`. NaN has no JSON number and becomes text. */
export function fromPythonNumber(value: PythonNumber): JsonValue {
  if (typeof value === 'bigint') {
    const small = Number(value)
    return Number.isSafeInteger(small) ? small : value
  }
  if (Number.isNaN(value)) return 'nan'
  // An over-long exponent is valid JSON and reads back as infinity.
  if (!Number.isFinite(value)) return new NumberText(value > 0 ? '1e999' : '-1e999')
  return Number.isInteger(value) ? new NumberText(formatPythonNumber(value)) : value
}

/** The name Python gives the type of a JSON value. */
export function pythonTypeName(value: JsonValue): string {
  if (value === null) return 'NoneType'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'string') return 'str'
  if (Array.isArray(value)) return 'list'
  const number = toPythonNumber(value)
  if (number === null) return 'dict'
  return typeof number === 'bigint' ? 'int' : 'float'
}

/** `int(value)`. */
export function pythonInt(value: JsonValue): bigint {
  if (typeof value === 'string') return readPythonInt(value)
  const number = toNumeric(value)
  if (number === null) {
    const type = pythonTypeName(value)
    throw new PythonError(
      'TypeError',
      `int() argument must be a string, a bytes-like object or a real number, not '${type}'`,
    )
  }
  return typeof number === 'bigint' ? number : truncatePythonFloat(number)
}

/** `float(value)`. */
export function pythonFloat(value: JsonValue): number {
  if (typeof value === 'string') return readPythonFloat(value)
  const number = toNumeric(value)
  if (number === null) {
    throw new PythonError(
      'TypeError',
      `float() argument must be a string or a real number, not '${pythonTypeName(value)}'`,
    )
  }
  return toPythonFloat(number)
}

/** `bool(value)`: empty and zero are false, every other string true, also "false". */
export function pythonBool(value: JsonValue): boolean {
  if (value === null) return false
  if (typeof value === 'boolean') return value
  if (typeof value === 'string' || Array.isArray(value)) return value.length > 0
  const number = toPythonNumber(value)
  if (number !== null) return number !== 0n && number !== 0
  return Object.keys(value).length > 0
}

/** `str(value)`. */
export function pythonStr(value: JsonValue): string {
  return typeof value === 'string' ? value : pythonRepr(value)
}

/** `repr(value)`. */
export function pythonRepr(value: JsonValue): string {
  if (value === null) return 'None'
  if (typeof value === 'string') return pythonReprText(value)
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value)) return `[${value.map(pythonRepr).join(', ')}]`
  const number = toPythonNumber(value)
  if (number !== null) return formatPythonNumber(number)
  const entries = Object.entries(value as JsonObject)
  return `{${entries.map(([key, item]) => `${pythonReprText(key)}: ${pythonRepr(item)}`).join(', ')}}`
}

/** `a == b`: 1 equals 1.0 and True; lists and objects by their members. */
export function pythonEquals(left: JsonValue, right: JsonValue): boolean {
  if (left === right) return !Number.isNaN(left as number)
  const [a, b] = [toNumeric(left), toNumeric(right)]
  if (a !== null || b !== null) return a !== null && b !== null && comparePythonNumbers(a, b) === 0
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false
    return left.every((item, index) => pythonEquals(item, right[index]))
  }
  if (!isJsonObject(left) || !isJsonObject(right)) return false
  const keys = Object.keys(left)
  if (keys.length !== Object.keys(right).length) return false
  return keys.every((key) => Object.hasOwn(right, key) && pythonEquals(left[key], right[key]))
}

const NON_ASCII = /[\u007f-\uffff]/g

function dumpText(text: string): string {
  // JSON.stringify already escapes the control characters below U+0020 as json.dumps does.
  return JSON.stringify(text).replace(NON_ASCII, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** A number as `json.dumps` writes it. */
export function dumpPythonNumber(number: PythonNumber): string {
  if (typeof number === 'bigint' || Number.isFinite(number)) return formatPythonNumber(number)
  if (Number.isNaN(number)) return 'NaN'
  return number > 0 ? 'Infinity' : '-Infinity'
}

interface DumpOptions {
  /** Spaces per level; members then stand on their own lines. */
  readonly indent?: number
}

/** `json.dumps(value)`: separators `", "` and `": "`, ASCII only, floats as Python prints them. */
export function pythonJsonDumps(value: JsonValue, options: DumpOptions = {}): string {
  const indent = options.indent === undefined ? null : ' '.repeat(options.indent)
  return dump(value, indent, '\n')
}

function dump(value: JsonValue, indent: string | null, lineStart: string): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return dumpText(value)
  const number = Array.isArray(value) ? null : toPythonNumber(value)
  if (number !== null) return dumpPythonNumber(number)
  const inner = indent === null ? '' : lineStart + indent
  const members = Array.isArray(value)
    ? value.map((item) => dump(item, indent, inner))
    : Object.entries(value as JsonObject).map(([key, item]) => `${dumpText(key)}: ${dump(item, indent, inner)}`)
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}']
  if (members.length === 0) return open + close
  return indent === null
    ? open + members.join(', ') + close
    : open + inner + members.join(`,${inner}`) + lineStart + close
}

// Python's numbers on JavaScript's: inside this file and its users a `bigint` is a Python int and a `number` a Python float,
// so the two never get mixed up. Rounding, division and printing follow Python; failures are PythonErrors with its texts.

export type PythonNumber = bigint | number

type PythonErrorType = 'ValueError' | 'TypeError' | 'OverflowError' | 'ZeroDivisionError' | 'KeyError' | 'IndexError'

/** What Python would have raised; `message` is `str(exception)`. */
export class PythonError extends Error {
  readonly type: PythonErrorType
  constructor(type: PythonErrorType, message: string) {
    super(message)
    this.name = 'PythonError'
    this.type = type
  }
}

// CPython refuses longer decimal texts because reading them takes quadratic time.
const MAX_INT_DIGITS = 4300
const INT_TEXT = /^[+-]?\d+(?:_\d+)*$/
// No digit can match in two ways, so that a long text that is no number does not take quadratic time.
const FLOAT_TEXT = /^[+-]?(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+(?:_\d+)*)?$/
const SPECIAL_FLOAT_TEXT = /^([+-]?)(inf|infinity|nan)$/i

/** `int(str)`. */
export function readPythonInt(text: string): bigint {
  const digits = readNumberCharacters(text)
  if (!INT_TEXT.test(digits)) {
    // CPython cuts the shown text at 200 characters.
    const shown = pythonReprText(text.slice(0, 200)).slice(0, 200)
    throw new PythonError('ValueError', `invalid literal for int() with base 10: ${shown}`)
  }
  const plain = digits.replaceAll('_', '').replace('+', '')
  const count = plain.startsWith('-') ? plain.length - 1 : plain.length
  if (count > MAX_INT_DIGITS) {
    throw new PythonError(
      'ValueError',
      `Exceeds the limit (${MAX_INT_DIGITS} digits) for integer string conversion: value has ${count} digits; use sys.set_int_max_str_digits() to increase the limit`,
    )
  }
  return BigInt(plain)
}

/** `float(str)`. */
export function readPythonFloat(text: string): number {
  const stripped = readNumberCharacters(text)
  if (FLOAT_TEXT.test(stripped)) return Number(stripped.replaceAll('_', ''))
  const special = SPECIAL_FLOAT_TEXT.exec(stripped)
  if (special === null)
    throw new PythonError('ValueError', `could not convert string to float: ${pythonReprText(text)}`)
  if (special[2].toLowerCase() === 'nan') return Number.NaN
  return special[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
}

/** `int(float)`: toward zero. */
export function truncatePythonFloat(value: number): bigint {
  if (Number.isNaN(value)) throw new PythonError('ValueError', 'cannot convert float NaN to integer')
  if (!Number.isFinite(value)) throw new PythonError('OverflowError', 'cannot convert float infinity to integer')
  return BigInt(Math.trunc(value))
}

/** `float(int)`. */
export function toPythonFloat(value: PythonNumber): number {
  const float = Number(value)
  if (typeof value === 'bigint' && !Number.isFinite(float)) {
    throw new PythonError('OverflowError', 'int too large to convert to float')
  }
  return float
}

/** `str(int)` and `str(float)`: the shortest text that reads back as the same number. */
export function formatPythonNumber(value: PythonNumber): string {
  if (typeof value === 'bigint') return value.toString()
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf'
  if (Object.is(value, -0)) return '-0.0'
  const [mantissa, exponentText] = value.toExponential().split('e')
  const exponent = Number(exponentText)
  // Python changes to the exponent form below 1e-4 and from 1e16 on, with at least two exponent digits.
  if (exponent < -4 || exponent >= 16) {
    return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`
  }
  return Number.isInteger(value) ? `${BigInt(value)}.0` : value.toString()
}

const TEN = 10n

export interface Fraction {
  readonly numerator: bigint
  /** Positive. */
  readonly denominator: bigint
}

/** A finite double as an exact fraction with a power of two below. */
export function toFraction(value: number): Fraction {
  const bits = new DataView(new ArrayBuffer(8))
  bits.setFloat64(0, value)
  const high = bits.getUint32(0)
  const biased = (high >>> 20) & 0x7ff
  const fraction = (BigInt(high & 0xfffff) << 32n) | BigInt(bits.getUint32(4))
  const mantissa = biased === 0 ? fraction : fraction | (1n << 52n)
  const exponent = (biased === 0 ? 1 : biased) - 1075
  const signed = value < 0 ? -mantissa : mantissa
  return exponent >= 0
    ? { numerator: signed << BigInt(exponent), denominator: 1n }
    : { numerator: signed, denominator: 1n << BigInt(-exponent) }
}

/** The quotient as a whole number, halves rounded to the even neighbour. */
export function divideHalfToEven(numerator: bigint, denominator: bigint): bigint {
  const floor = floorDivideInts(numerator, denominator)
  const twiceRest = 2n * (numerator - floor * denominator)
  if (twiceRest < denominator || (twiceRest === denominator && floor % 2n === 0n)) return floor
  return floor + 1n
}

/** `round(x)`: an int, halves to the even neighbour. */
export function roundPython(value: PythonNumber): bigint {
  if (typeof value === 'bigint') return value
  truncatePythonFloat(value) // refuses infinity and NaN in Python's words
  const { numerator, denominator } = toFraction(value)
  return divideHalfToEven(numerator, denominator)
}

/** The same with a float as the result. */
export function roundHalfEven(value: number): number {
  return Number(roundPython(value))
}

/** `round(x, digits)`: the type stays; decided on the exact value of the double, as Python does. */
export function roundPythonTo(value: PythonNumber, digits: number): PythonNumber {
  if (typeof value === 'bigint') {
    if (digits >= 0) return value
    const step = TEN ** BigInt(-digits)
    return divideHalfToEven(value, step) * step
  }
  // A double has no more than 324 decimal places worth asking for, and none above 10^308.
  if (!Number.isFinite(value) || value === 0 || digits > 323) return value
  if (digits < -308) return value < 0 ? -0 : 0
  const { numerator, denominator } = toFraction(value)
  const scaled = digits >= 0 ? numerator * TEN ** BigInt(digits) : numerator
  const below = digits >= 0 ? denominator : denominator * TEN ** BigInt(-digits)
  const rounded = Number(`${divideHalfToEven(scaled, below)}e${-digits}`)
  return rounded === 0 && value < 0 ? -0 : rounded
}

function floorDivideInts(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor
  return dividend % divisor !== 0n && dividend < 0n !== divisor < 0n ? quotient - 1n : quotient
}

function refuseZero(divisor: PythonNumber, message: string): void {
  if (divisor === 0n || divisor === 0) throw new PythonError('ZeroDivisionError', message)
}

/** `a // b`. */
export function floorDividePython(dividend: PythonNumber, divisor: PythonNumber): PythonNumber {
  if (typeof dividend === 'bigint' && typeof divisor === 'bigint') {
    refuseZero(divisor, 'integer division or modulo by zero')
    return floorDivideInts(dividend, divisor)
  }
  refuseZero(divisor, 'float floor division by zero')
  const [a, b] = [toPythonFloat(dividend), toPythonFloat(divisor)]
  const rest = a % b
  const towardZero = (a - rest) / b
  const quotient = rest !== 0 && rest < 0 !== b < 0 ? towardZero - 1 : towardZero
  if (quotient === 0) return a / b < 0 || Object.is(a / b, -0) ? -0 : 0
  // Rounding may leave the quotient slightly below the whole number it should be.
  const floor = Math.floor(quotient)
  return quotient - floor > 0.5 ? floor + 1 : floor
}

/** `a % b`: takes the sign of the divisor. */
export function moduloPython(dividend: PythonNumber, divisor: PythonNumber): PythonNumber {
  if (typeof dividend === 'bigint' && typeof divisor === 'bigint') {
    refuseZero(divisor, 'integer modulo by zero')
    return dividend - floorDivideInts(dividend, divisor) * divisor
  }
  refuseZero(divisor, 'float modulo')
  return moduloFloats(toPythonFloat(dividend), toPythonFloat(divisor))
}

function moduloFloats(dividend: number, divisor: number): number {
  const rest = dividend % divisor
  if (rest === 0) return divisor < 0 ? -0 : 0
  return rest < 0 !== divisor < 0 ? rest + divisor : rest
}

/** -1, 0 or 1 by exact value, also between a large int and a float; null when either is NaN. */
export function comparePythonNumbers(left: PythonNumber, right: PythonNumber): -1 | 0 | 1 | null {
  // JavaScript compares bigint with number by mathematical value, as Python does.
  if (left < right) return -1
  if (left > right) return 1
  // biome-ignore lint/suspicious/noDoubleEquals: a bigint equals a number only under loose equality
  return left == right ? 0 : null
}
