/** Python's operators on its values. Ints are exact and bounded in size; texts and lists are bounded in length. */

import { comparePythonNumbers, floorDividePython, moduloPython, toPythonFloat } from '../../../lib/python/values.ts'
import { NodeError } from '../../node/node-error.ts'
import {
  asNumber,
  inPython,
  isPyList,
  type PyNumber,
  type PyValue,
  pyEquals,
  pyStr,
  pyTruth,
  pyTypeName,
} from '../python-value.ts'
import { shorten } from '../text-limit.ts'
import { pyContains } from '../text-methods.ts'
import { bitLength, divideInts, powFloat } from './exact-float.ts'
import type { BinaryOperator, Comparison, UnaryOperator } from './parse-expression.ts'

// Refusals of the evaluator, under the names that clients know from ComfyUI's.

const MAX_SHOWN = 100

function tooHigh(left: PyValue, operator: string, right: PyValue): NodeError {
  const shown = (value: PyValue) => shorten(pyStr(value), MAX_SHOWN)
  return new NodeError(
    'simpleeval.NumberTooHigh',
    `Sorry! I don't want to evaluate ${shown(left)} ${operator} ${shown(right)}`,
  )
}

function tooLong(): NodeError {
  return new NodeError('simpleeval.IterableTooLong', 'Sorry, I will not evaluate something that long.')
}

export function notAvailable(what: string): NodeError {
  return new NodeError('simpleeval.FeatureNotAvailable', `Sorry, ${what} is not available in this evaluator`)
}

export function typeError(message: string): NodeError {
  return new NodeError('TypeError', message)
}

function unsupported(operator: string, left: PyValue, right: PyValue): NodeError {
  return typeError(`unsupported operand type(s) for ${operator}: '${pyTypeName(left)}' and '${pyTypeName(right)}'`)
}

// The limits of ComfyUI's evaluator.
const MAX_LENGTH = 100_000
const MAX_POWER = 4_000_000n
const MAX_SHIFT = 10_000n
const MAX_SHIFTED = Number.MAX_VALUE
// Our own: CPython would compute on for minutes.
const MAX_INT_BITS = 2 ** 22

const isInt = (value: PyNumber): value is bigint => typeof value === 'bigint'
const toFloat = (value: PyNumber) => inPython(() => toPythonFloat(value))

type IntOperation = (left: bigint, right: bigint) => bigint
type FloatOperation = (left: number, right: number) => number

function calculate(numbers: readonly [PyNumber, PyNumber], int: IntOperation, float: FloatOperation): PyNumber {
  const [left, right] = numbers
  return isInt(left) && isInt(right) ? int(left, right) : float(toFloat(left), toFloat(right))
}

function numbersOf(left: PyValue, right: PyValue): [PyNumber, PyNumber] | null {
  const [a, b] = [asNumber(left), asNumber(right)]
  return a === null || b === null ? null : [a, b]
}

function needNumbers(operator: string, left: PyValue, right: PyValue): [PyNumber, PyNumber] {
  const numbers = numbersOf(left, right)
  if (numbers === null) throw unsupported(operator, left, right)
  return numbers
}

export function add(left: PyValue, right: PyValue): PyValue {
  const numbers = numbersOf(left, right)
  if (numbers !== null)
    return calculate(
      numbers,
      (a, b) => a + b,
      (a, b) => a + b,
    )
  if (typeof left === 'string' && typeof right === 'string')
    return joined(left.length + right.length, () => left + right)
  if (isPyList(left) && isPyList(right)) return joined(left.length + right.length, () => [...left, ...right])
  if (typeof left === 'string' || isPyList(left)) {
    const name = pyTypeName(left)
    throw typeError(`can only concatenate ${name} (not "${pyTypeName(right)}") to ${name}`)
  }
  throw unsupported('+', left, right)
}

function joined<T extends PyValue>(length: number, make: () => T): T {
  if (length > MAX_LENGTH) throw tooLong()
  return make()
}

function multiply(left: PyValue, right: PyValue): PyValue {
  const numbers = numbersOf(left, right)
  if (numbers !== null) return calculate(numbers, multiplyInts, (a, b) => a * b)
  const [row, count] = typeof left === 'string' || isPyList(left) ? [left, right] : [right, left]
  const times = asNumber(count)
  if (typeof times === 'number') throw typeError("can't multiply sequence by non-int of type 'float'")
  if ((typeof row !== 'string' && !isPyList(row)) || times === null || !isInt(times))
    throw unsupported('*', left, right)
  const rounds = times < 0n ? 0 : Number(times)
  return joined(rounds * row.length, () =>
    typeof row === 'string' ? row.repeat(rounds) : Array.from({ length: rounds }, () => row).flat(),
  )
}

function multiplyInts(left: bigint, right: bigint): bigint {
  if (bitLength(left) + bitLength(right) > MAX_INT_BITS) throw tooHigh(left, '*', right)
  return left * right
}

function divide(left: PyValue, right: PyValue): PyNumber {
  const [a, b] = needNumbers('/', left, right)
  const areInts = isInt(a) && isInt(b)
  if (b === 0n || b === 0)
    throw new NodeError('ZeroDivisionError', areInts ? 'division by zero' : 'float division by zero')
  return areInts ? divideInts(a, b) : toFloat(a) / toFloat(b)
}

/** `left ** right` without the limits of the operator. */
export function power(left: PyValue, right: PyValue, operator = '** or pow()'): PyNumber {
  const [base, exponent] = needNumbers(operator, left, right)
  if (isInt(base) && isInt(exponent) && exponent >= 0n) {
    if (bitLength(base) * Number(exponent) > MAX_INT_BITS && bitLength(base) > 1) throw tooHigh(base, '**', exponent)
    return base ** exponent
  }
  return powerOfFloats(toFloat(base), toFloat(exponent))
}

function powerOfFloats(base: number, exponent: number): number {
  if (base === 0 && exponent < 0) {
    throw new NodeError('ZeroDivisionError', '0.0 cannot be raised to a negative power')
  }
  if (base < 0 && Number.isFinite(base) && Number.isFinite(exponent) && !Number.isInteger(exponent)) {
    throw new NodeError(
      'ValueError',
      'a negative number raised to a fraction is a complex number, which is not supported',
    )
  }
  const result = powFloat(base, exponent)
  if (!Number.isFinite(result) && Number.isFinite(base) && Number.isFinite(exponent)) {
    throw new NodeError('OverflowError', "(34, 'Numerical result out of range')")
  }
  return result
}

/** Refuses an operand beyond its limit, before anything else about it is judged. */
function withinLimit(value: PyValue, limit: bigint | number, refuse: () => NodeError): PyNumber {
  const number = asNumber(value)
  if (number === null) throw typeError(`bad operand type for abs(): '${pyTypeName(value)}'`)
  if (number > limit || number < -limit) throw refuse()
  return number
}

function limitedPower(left: PyValue, right: PyValue): PyNumber {
  const refuse = () => tooHigh(left, '**', right)
  return power(withinLimit(left, MAX_POWER, refuse), withinLimit(right, MAX_POWER, refuse))
}

function shift(operator: '<<' | '>>'): (left: PyValue, right: PyValue) => PyNumber {
  return (left, right) => {
    const refuse = () => tooHigh(left, operator, right)
    const count = withinLimit(right, MAX_SHIFT, refuse)
    const value = withinLimit(left, MAX_SHIFTED, refuse)
    if (!isInt(value) || !isInt(count)) throw unsupported(operator, left, right)
    if (count < 0n) throw new NodeError('ValueError', 'negative shift count')
    return operator === '<<' ? value << count : value >> count
  }
}

function bitwise(operator: '&' | '|' | '^', int: IntOperation): (left: PyValue, right: PyValue) => PyValue {
  return (left, right) => {
    const [a, b] = needNumbers(operator, left, right)
    if (!isInt(a) || !isInt(b)) throw unsupported(operator, left, right)
    const result = int(a, b)
    // Truth values stay truth values.
    return typeof left === 'boolean' && typeof right === 'boolean' ? result !== 0n : result
  }
}

export const BINARY: Readonly<Record<BinaryOperator, (left: PyValue, right: PyValue) => PyValue>> = {
  '+': add,
  '-': (left, right) =>
    calculate(
      needNumbers('-', left, right),
      (a, b) => a - b,
      (a, b) => a - b,
    ),
  '*': multiply,
  '/': divide,
  '//': (left, right) => {
    const [a, b] = needNumbers('//', left, right)
    return inPython(() => floorDividePython(a, b))
  },
  '%': (left, right) => {
    const [a, b] = needNumbers('%', left, right)
    return inPython(() => moduloPython(a, b))
  },
  '**': limitedPower,
  '<<': shift('<<'),
  '>>': shift('>>'),
  '&': bitwise('&', (a, b) => a & b),
  '|': bitwise('|', (a, b) => a | b),
  '^': bitwise('^', (a, b) => a ^ b),
  '@': (left, right) => {
    throw unsupported('@', left, right)
  },
}

function signed(operator: '+' | '-' | '~', operand: PyValue): PyNumber {
  const number = asNumber(operand)
  if (number === null || (operator === '~' && !isInt(number))) {
    throw typeError(`bad operand type for unary ${operator}: '${pyTypeName(operand)}'`)
  }
  if (operator === '+') return number
  return operator === '-' ? -number : ~(number as bigint)
}

export const UNARY: Readonly<Record<UnaryOperator, (operand: PyValue) => PyValue>> = {
  '+': (operand) => signed('+', operand),
  '-': (operand) => signed('-', operand),
  '~': (operand) => signed('~', operand),
  not: (operand) => !pyTruth(operand),
}

/** -1, 0, 1, or null when one of them is NaN. */
function order(operator: string, left: PyValue, right: PyValue): -1 | 0 | 1 | null {
  const numbers = numbersOf(left, right)
  if (numbers !== null) return comparePythonNumbers(...numbers)
  if (typeof left === 'string' && typeof right === 'string') return left < right ? -1 : left > right ? 1 : 0
  const types = `'${pyTypeName(left)}' and '${pyTypeName(right)}'`
  throw typeError(`'${operator}' not supported between instances of ${types}`)
}

export function isLess(left: PyValue, right: PyValue): boolean {
  return order('<', left, right) === -1
}

export function isGreater(left: PyValue, right: PyValue): boolean {
  return order('>', left, right) === 1
}

function contains(item: PyValue, container: PyValue): boolean {
  if (isPyList(container)) return container.some((member) => pyEquals(member, item))
  if (typeof container !== 'string') throw typeError(`argument of type '${pyTypeName(container)}' is not iterable`)
  if (typeof item === 'string') return pyContains(container, item)
  throw typeError(`'in <string>' requires string as left operand, not ${pyTypeName(item)}`)
}

/** Identity, as far as values without an address have one. */
function isSame(left: PyValue, right: PyValue): boolean {
  return typeof left === typeof right && left === right
}

export const COMPARE: Readonly<Record<Comparison, (left: PyValue, right: PyValue) => boolean>> = {
  '==': pyEquals,
  '!=': (left, right) => !pyEquals(left, right),
  '<': isLess,
  '<=': (left, right) => [-1, 0].includes(order('<=', left, right) ?? 2),
  '>': isGreater,
  '>=': (left, right) => [0, 1].includes(order('>=', left, right) ?? 2),
  in: contains,
  'not in': (item, container) => !contains(item, container),
  is: isSame,
  'is not': (left, right) => !isSame(left, right),
}
