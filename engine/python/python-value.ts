/**
 * Values as Python sees them: a `bigint` is an int and a `number` a float, so that `4` and `4.0` cannot be mixed up, and a
 * dict keeps its order whatever its keys look like. Nodes that compute or print convert their inputs to these first.
 */
import { type JsonValue, NumberText } from '../../lib/json/lossless-json.ts'
import { pythonReprText } from '../../lib/python/text.ts'
import {
  comparePythonNumbers,
  formatPythonNumber,
  fromPythonNumber,
  PythonError,
  toPythonNumber,
} from '../../lib/python/values.ts'
import { NodeError } from '../node/node-error.ts'
import { elementCount, Tensor } from '../tensor/tensor.ts'
import type { Value } from '../values/value.ts'

export type PyDict = ReadonlyMap<string, PyValue>
export type PyValue = null | boolean | bigint | number | string | Tensor | readonly PyValue[] | PyDict
export type PyNumber = bigint | number

// Python's own recursion limit, near enough; the walk below must not exhaust the stack.
const MAX_DEPTH = 500

export function toPyValue(value: Value, depth = 0): PyValue {
  if (depth > MAX_DEPTH) throw new NodeError('RecursionError', 'maximum recursion depth exceeded')
  if (value === null || typeof value === 'boolean' || typeof value === 'string' || value instanceof Tensor) return value
  if (Array.isArray(value)) return value.map((item) => toPyValue(item, depth + 1))
  if (typeof value !== 'object' || value instanceof NumberText) return toPythonNumber(value) as PyNumber
  return new Map(Object.entries(value).map(([key, item]) => [key, toPyValue(item as Value, depth + 1)]))
}

/** An int or float in the form that travels along links. */
export function fromPyNumber(value: PyNumber): Value {
  return fromPythonNumber(value) as Value & JsonValue
}

export function isPyList(value: PyValue): value is readonly PyValue[] {
  return Array.isArray(value)
}

function isPyDict(value: PyValue): value is PyDict {
  return value instanceof Map
}

export function pyTypeName(value: PyValue): string {
  if (value === null) return 'NoneType'
  if (value instanceof Tensor) return 'Tensor'
  if (isPyList(value)) return 'list'
  if (isPyDict(value)) return 'dict'
  return { boolean: 'bool', bigint: 'int', number: 'float', string: 'str' }[typeof value as 'boolean']
}

/** The number a value counts as in arithmetic: Python's bool is an int. */
export function asNumber(value: PyValue): PyNumber | null {
  if (typeof value === 'boolean') return BigInt(value)
  return typeof value === 'bigint' || typeof value === 'number' ? value : null
}

/** `bool(value)`. */
export function pyTruth(value: PyValue): boolean {
  if (value === null) return false
  if (value instanceof Tensor) return tensorTruth(value)
  if (isPyList(value) || typeof value === 'string') return value.length > 0
  if (isPyDict(value)) return value.size > 0
  // NaN is true in Python.
  return typeof value === 'boolean' ? value : value !== 0n && value !== 0
}

function tensorTruth({ shape, data }: Tensor): boolean {
  const count = elementCount(shape)
  if (count === 1) return data[0] !== 0
  const problem = count === 0 ? 'no values' : 'more than one value'
  throw new NodeError('RuntimeError', `Boolean value of Tensor with ${problem} is ambiguous`)
}

/** `str(value)`. */
export function pyStr(value: PyValue): string {
  return typeof value === 'string' ? value : pyRepr(value)
}

/** `repr(value)`. A tensor is described by its shape: its numbers are of no use in a text. */
export function pyRepr(value: PyValue): string {
  if (value === null) return 'None'
  if (typeof value === 'string') return pythonReprText(value)
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (value instanceof Tensor) return `tensor(shape=[${value.shape.join(', ')}])`
  if (isPyList(value)) return `[${value.map(pyRepr).join(', ')}]`
  if (!isPyDict(value)) return formatPythonNumber(value)
  return `{${[...value].map(([key, item]) => `${pythonReprText(key)}: ${pyRepr(item)}`).join(', ')}}`
}

/** `a == b`. */
export function pyEquals(left: PyValue, right: PyValue): boolean {
  const [a, b] = [asNumber(left), asNumber(right)]
  if (a !== null && b !== null) return comparePythonNumbers(a, b) === 0
  if (isPyList(left) && isPyList(right)) {
    return left.length === right.length && left.every((item, index) => pyEquals(item, right[index]))
  }
  if (isPyDict(left) && isPyDict(right)) {
    if (left.size !== right.size) return false
    return [...left].every(([key, item]) => right.has(key) && pyEquals(item, right.get(key) as PyValue))
  }
  return left === right
}

/** Runs a Python conversion of `lib`; its PythonError becomes a NodeError, the form in which nodes fail. */
export function inPython<T>(run: () => T): T {
  try {
    return run()
  } catch (error) {
    throw error instanceof PythonError ? new NodeError(error.type, error.message) : error
  }
}
