/** The functions an expression may call, with Python's results and refusals. */
import {
  readPythonFloat,
  readPythonInt,
  roundPython,
  roundPythonTo,
  toPythonFloat,
  truncatePythonFloat,
} from '../../../lib/python/values.ts'
import { NodeError } from '../../node/node-error.ts'
import { asNumber, inPython, isPyList, type PyNumber, type PyValue, pyStr, pyTypeName } from '../python-value.ts'
import { bitLength, exactLog, exactLog2, exactLog10 } from './exact-float.ts'
import { add, isGreater, isLess, power, typeError } from './operators.ts'

type Arguments = readonly PyValue[]

interface PythonFunction {
  /** Names of the parameters; null for any number of arguments. */
  readonly parameters: readonly string[] | null
  readonly required: number
  call(values: Arguments): PyValue
}

const MAX_EXPONENT = 4000n

function domainError(): NodeError {
  return new NodeError('ValueError', 'math domain error')
}

function needNumber(value: PyValue): PyNumber {
  const number = asNumber(value)
  if (number === null) throw typeError(`must be real number, not ${pyTypeName(value)}`)
  return number
}

const needFloat = (value: PyValue) => inPython(() => toPythonFloat(needNumber(value)))

function itemsOf(value: PyValue): Arguments {
  if (isPyList(value)) return value
  if (typeof value === 'string') return Array.from(value)
  throw typeError(`'${pyTypeName(value)}' object is not iterable`)
}

function sum(values: Arguments): PyValue {
  const [first] = values
  const items = values.length === 1 && (isPyList(first) || typeof first === 'string') ? itemsOf(first) : values
  return items.reduce((total, item) => add(total, item), 0n)
}

function extreme(name: string, isBetter: (left: PyValue, right: PyValue) => boolean): PythonFunction {
  return {
    parameters: null,
    required: 1,
    call(values) {
      const items = values.length === 1 ? itemsOf(values[0]) : values
      if (items.length === 0) throw new NodeError('ValueError', `${name}() arg is an empty sequence`)
      return items.reduce((best, item) => (isBetter(item, best) ? item : best))
    },
  }
}

function abs(value: PyValue): PyNumber {
  const number = asNumber(value)
  if (number === null) throw typeError(`bad operand type for abs(): '${pyTypeName(value)}'`)
  if (typeof number === 'number') return Math.abs(number)
  return number < 0n ? -number : number
}

function round([value, digits = null]: Arguments): PyNumber {
  const number = asNumber(value)
  if (number === null) throw typeError(`type ${pyTypeName(value)} doesn't define __round__ method`)
  if (digits === null) return inPython(() => roundPython(number))
  const places = asNumber(digits)
  if (typeof places !== 'bigint') {
    throw typeError(`'${pyTypeName(digits)}' object cannot be interpreted as an integer`)
  }
  // An int has no digits that far to the left.
  if (typeof number === 'bigint' && -places > bitLength(number)) return 0n
  return inPython(() => roundPythonTo(number, Number(places)))
}

function limitedPower([base, exponent]: Arguments): PyNumber {
  const size = abs(exponent)
  if (size > MAX_EXPONENT) {
    throw new NodeError('ValueError', `Exponent ${pyStr(exponent)} exceeds maximum allowed (${MAX_EXPONENT})`)
  }
  return power(base, exponent, '** or pow()')
}

function sqrt([value]: Arguments): number {
  const float = needFloat(value)
  if (float < 0) throw domainError()
  return Math.sqrt(float)
}

/** `math.ceil` and `math.floor`: an int. */
function toInt(round: (value: number) => number): (values: Arguments) => bigint {
  return ([value]) => {
    const number = needNumber(value)
    return typeof number === 'bigint' ? number : inPython(() => truncatePythonFloat(round(number)))
  }
}

function logarithm(value: PyValue, of: (value: PyNumber) => number): number {
  const number = needNumber(value)
  if (number <= 0) throw domainError()
  return of(number)
}

function log([value, base]: Arguments): number {
  const result = logarithm(value, exactLog)
  if (base === undefined) return result
  const divisor = logarithm(base, exactLog)
  if (divisor === 0) throw new NodeError('ZeroDivisionError', 'float division by zero')
  return result / divisor
}

function circular(of: (value: number) => number): PythonFunction {
  return {
    parameters: ['x'],
    required: 1,
    call([value]) {
      const float = needFloat(value)
      if (float === Number.POSITIVE_INFINITY || float === Number.NEGATIVE_INFINITY) throw domainError()
      return of(float)
    },
  }
}

function int([value = 0n]: Arguments): bigint {
  if (typeof value === 'string') return inPython(() => readPythonInt(value))
  const number = asNumber(value)
  if (number === null) {
    const type = pyTypeName(value)
    throw typeError(`int() argument must be a string, a bytes-like object or a real number, not '${type}'`)
  }
  return typeof number === 'bigint' ? number : inPython(() => truncatePythonFloat(number))
}

function float([value = 0]: Arguments): number {
  if (typeof value === 'string') return inPython(() => readPythonFloat(value))
  const number = asNumber(value)
  if (number === null) throw typeError(`float() argument must be a string or a real number, not '${pyTypeName(value)}'`)
  return inPython(() => toPythonFloat(number))
}

const ofOne = (call: (values: Arguments) => PyValue): PythonFunction => ({ parameters: ['x'], required: 1, call })

const FUNCTIONS: Readonly<Record<string, PythonFunction>> = {
  sum: { parameters: null, required: 0, call: sum },
  min: extreme('min', isLess),
  max: extreme('max', isGreater),
  abs: ofOne(([value]) => abs(value)),
  round: { parameters: ['number', 'ndigits'], required: 1, call: round },
  pow: { parameters: ['base', 'exp'], required: 2, call: limitedPower },
  sqrt: ofOne(sqrt),
  ceil: ofOne(toInt(Math.ceil)),
  floor: ofOne(toInt(Math.floor)),
  log: { parameters: ['x', 'base'], required: 1, call: log },
  log2: ofOne(([value]) => logarithm(value, exactLog2)),
  log10: ofOne(([value]) => logarithm(value, exactLog10)),
  sin: circular(Math.sin),
  cos: circular(Math.cos),
  tan: circular(Math.tan),
  int: { parameters: ['x'], required: 0, call: int },
  float: { parameters: ['x'], required: 0, call: float },
}

export function hasFunction(name: string): boolean {
  return Object.hasOwn(FUNCTIONS, name)
}

/** `hasFunction(name)` must hold. */
export function callFunction(name: string, positional: Arguments, named: ReadonlyMap<string, PyValue>): PyValue {
  const { parameters, required, call } = FUNCTIONS[name]
  const values = [...positional]
  for (const [key, value] of named) {
    const index = parameters?.indexOf(key) ?? -1
    if (index === -1) throw typeError(`${name}() got an unexpected keyword argument '${key}'`)
    if (index < positional.length) throw typeError(`${name}() got multiple values for argument '${key}'`)
    values[index] = value
  }
  const most = parameters?.length ?? Number.POSITIVE_INFINITY
  if (values.length > most) throw typeError(`${name}() takes at most ${most} arguments (${values.length} given)`)
  if (values.length < required) {
    throw typeError(`${name} expected at least ${required} argument${required === 1 ? '' : 's'}, got ${values.length}`)
  }
  return call(values)
}
