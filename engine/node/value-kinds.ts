/** Further plain kinds of input, beside those of input-kinds.ts: socket types without a widget, colours, boxes, truth. */
import type { InputOptions } from '../graph/node-catalog.ts'
import { pyTruth, toPyValue } from '../python/python-value.ts'
import { Tensor } from '../tensor/tensor.ts'
import { type Value, valueTypeName } from '../values/value.ts'
import { type InputKind, int } from './input-kinds.ts'
import { NodeError } from './node-error.ts'

/** A value of a named type that the node judges itself: `DICT`, or a union such as `INT,FLOAT`. */
export function ofType(type: string, options: InputOptions = {}): InputKind<Value> {
  return { spec: [type, options], read: (value) => value }
}

/** A switch that takes whatever a link brings by its truth, as Python's `if` does. */
export function truth(options: InputOptions = {}): InputKind<boolean> {
  return { spec: ['BOOLEAN', options], read: (value) => pyTruth(toPyValue(value)) }
}

/** A colour as text; what it must look like is the node's business. */
export function color(options: InputOptions): InputKind<string> {
  return {
    spec: ['COLOR', options],
    read(value, name) {
      if (typeof value === 'string') return value
      throw new NodeError('TypeError', `${name}: expected a colour such as #ffffff, got '${valueTypeName(value)}'`)
    },
  }
}

export interface BoundingBox {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

const DEFAULT_BOX: BoundingBox = { x: 0, y: 0, width: 512, height: 512 }
const side = int()

/** A box in pixels; keys that are missing have the values of the default box. */
export function boundingBox(options: InputOptions = {}): InputKind<BoundingBox> {
  return {
    spec: ['BOUNDING_BOX', { default: { ...DEFAULT_BOX }, socketless: true, ...options }],
    read(value, name) {
      if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Tensor) {
        throw new NodeError(
          'TypeError',
          `${name}: expected a box with x, y, width and height, got '${valueTypeName(value)}'`,
        )
      }
      const given = value as Readonly<Record<string, Value>>
      const read = (key: keyof BoundingBox) =>
        Object.hasOwn(given, key) ? side.read(given[key], `${name}.${key}`) : DEFAULT_BOX[key]
      return { x: read('x'), y: read('y'), width: read('width'), height: read('height') }
    },
  }
}
