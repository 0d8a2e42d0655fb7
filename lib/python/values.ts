/**
 * Python's built-in conversions on losslessly parsed JSON: `int()`, `float()`, `bool()`, `str()`, `repr()`, `==` and
 * `json.dumps`. JSON's `1` is a Python int and `1.0` a float, whatever JavaScript would make of them. Pure; failures are
 * PythonErrors with Python's own words.
 */
import { isJsonObject, type JsonObject, type JsonValue, NumberText } from '../json/lossless-json.ts'
import {
  comparePythonNumbers,
  formatPythonNumber,
  PythonError,
  type PythonNumber,
  readPythonFloat,
  readPythonInt,
  toPythonFloat,
  truncatePythonFloat,
} from './numbers.ts'
import { pythonReprText } from './text.ts'

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
