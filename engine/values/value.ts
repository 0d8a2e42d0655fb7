/**
 * What travels along links. Numbers keep Python's two kinds by the rule of lossless-json: an integer-valued `number` and a
 * `bigint` are ints, a fractional `number` and a `NumberText` are floats. So `4.0` stays distinct from `4` all the way.
 */
import { type JsonValue, NumberText } from '../../lib/json/lossless-json.ts'
import { pythonTypeName } from '../../lib/python/values.ts'
import { Tensor } from '../tensor/tensor.ts'

/** Stops every consumer of the value that holds it. With a message, the first consumer tells; without, it is silent. */
export class Blocker {
  readonly message: string | null
  constructor(message: string | null) {
    this.message = message
  }
}

export type Value = null | boolean | number | bigint | string | NumberText | Tensor | Blocker | Value[] | ValueObject
export type ValueObject = { [key: string]: Value }

/** A value with members, and none of the classes above. */
export function isValueObject(value: Value): value is ValueObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return !(value instanceof Tensor || value instanceof NumberText || value instanceof Blocker)
}

/** What an output slot holds: normally one value, more when the node was mapped over lists. */
export type Slot = readonly Value[]

/** The name Python would give to the type of a value, for messages that read like the original's. */
export function valueTypeName(value: Value): string {
  if (value instanceof Tensor) return 'Tensor'
  return value instanceof Blocker ? 'ExecutionBlocker' : pythonTypeName(value as JsonValue)
}

// Values come out of nodes, some of them written by users: nesting is bounded so that a walk cannot exhaust the stack.
export const MAX_DEPTH = 64

/** Visits every tensor inside a value. Throws TypeError for what is not a value at all. */
export function eachTensor(value: Value, visit: (tensor: Tensor) => void, depth = 0): void {
  if (value instanceof Tensor) {
    visit(value)
    return
  }
  if (typeof value === 'function' || typeof value === 'symbol' || value === undefined) {
    throw new TypeError(`${typeof value} cannot be passed between nodes`)
  }
  if (typeof value !== 'object' || value === null || value instanceof NumberText || value instanceof Blocker) return
  if (depth > MAX_DEPTH) throw new TypeError(`a value nested deeper than ${MAX_DEPTH} levels cannot be passed on`)
  for (const part of Array.isArray(value) ? value : Object.values(value)) eachTensor(part, visit, depth + 1)
}

/** Whether a value can be written as JSON: no tensor and no blocker anywhere inside. */
export function isJsonOnly(value: Value): value is JsonValue {
  if (typeof value !== 'object' || value === null || value instanceof NumberText) return true
  if (value instanceof Tensor || value instanceof Blocker) return false
  return (Array.isArray(value) ? value : Object.values(value)).every(isJsonOnly)
}
