/**
 * The kinds of input a node can declare. Each knows its `object_info` declaration and how to read a value at run time:
 * validation has judged constants, but links bring whatever their producer made, and a constant may stand where a tensor
 * is wanted. Such a value is refused here, in Python's words, before the node sees it.
 */
import { type JsonValue, NumberText } from '../../lib/json/lossless-json.ts'
import { fromPythonNumber, pythonFloat, pythonInt, pythonRepr } from '../../lib/python/values.ts'
import type { InputOptions, InputSpec } from '../graph/node-catalog.ts'
import { pyTruth, toPyValue } from '../python/python-value.ts'
import { Tensor } from '../tensor/tensor.ts'
import { type Value, valueTypeName } from '../values/value.ts'
import { NodeError } from './node-error.ts'

export interface InputKind<T> {
  readonly spec: InputSpec
  /** Throws NodeError when the value is not of this kind. */
  read(value: Value, name: string): T
}

const asSpec = (type: string | readonly unknown[], options: InputOptions | undefined): InputSpec =>
  options === undefined ? [type] : [type, options]

function wrongType(name: string, wanted: string, value: Value): NodeError {
  return new NodeError('TypeError', `${name}: expected ${wanted}, got '${valueTypeName(value)}'`)
}

function readTensor(value: Value, name: string, ranks: readonly number[]): Tensor {
  if (!(value instanceof Tensor)) {
    throw new NodeError('AttributeError', `'${valueTypeName(value)}' object has no attribute 'shape'`)
  }
  if (!ranks.includes(value.shape.length)) {
    const shape = `[${value.shape.join(', ')}]`
    throw new NodeError('RuntimeError', `${name}: expected ${ranks.join(' or ')} dimensions, got a tensor of ${shape}`)
  }
  return value
}

/** ComfyUI's bound on sides and offsets in pixels. */
export const MAX_RESOLUTION = 16_384
/** The largest seed: 64 bits. */
export const MAX_SEED = 2n ** 64n - 1n

export function image(options?: InputOptions): InputKind<Tensor> {
  return { spec: asSpec('IMAGE', options), read: (value, name) => readTensor(value, name, [4]) }
}

export function mask(options?: InputOptions): InputKind<Tensor> {
  return { spec: asSpec('MASK', options), read: (value, name) => readTensor(value, name, [2, 3]) }
}

/** An integer that a double holds exactly: sizes, counts, offsets. */
export function int(options?: InputOptions): InputKind<number> {
  const wide = wideInt(options)
  return {
    spec: wide.spec,
    read(value, name) {
      const read = wide.read(value, name)
      if (typeof read === 'bigint') throw new NodeError('OverflowError', `${name}: ${read} is too large`)
      return read
    },
  }
}

/** An integer of up to 64 bits, such as a seed: a `bigint` once a double would change it. */
export function wideInt(options?: InputOptions): InputKind<number | bigint> {
  return {
    spec: asSpec('INT', options),
    read(value, name) {
      if (typeof value === 'boolean') return Number(value)
      if (typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value))) {
        return fromPythonNumber(pythonInt(value)) as number | bigint
      }
      throw wrongType(name, 'an integer', value)
    },
  }
}

const FLOAT_OPTIONS: ReadonlySet<string> = new Set(['default', 'min', 'max', 'step', 'round'])

/** Options of a FLOAT are floats on the wire too: `1.0`, not `1`. */
function floatOptions(options: InputOptions): InputOptions {
  const entries = Object.entries(options).map(([key, value]) =>
    FLOAT_OPTIONS.has(key) && typeof value === 'number' ? [key, fromPythonNumber(value)] : [key, value],
  )
  return Object.fromEntries(entries)
}

export function float(options?: InputOptions): InputKind<number> {
  return {
    spec: asSpec('FLOAT', options && floatOptions(options)),
    read(value, name) {
      const isNumber = typeof value === 'number' || typeof value === 'bigint' || value instanceof NumberText
      // NaN has no JSON form, so a constant that means it arrives as this text.
      if (isNumber || typeof value === 'boolean' || value === 'nan') return pythonFloat(value)
      throw wrongType(name, 'a number', value)
    },
  }
}

export function string(options?: InputOptions): InputKind<string> {
  return {
    spec: asSpec('STRING', options),
    read(value, name) {
      if (typeof value !== 'string') throw wrongType(name, 'a string', value)
      return value
    },
  }
}

export function boolean(options?: InputOptions): InputKind<boolean> {
  return {
    spec: asSpec('BOOLEAN', options),
    read(value, name) {
      if (typeof value !== 'boolean') throw wrongType(name, 'a boolean', value)
      return value
    },
  }
}

function readChoice<Choice extends string>(choices: readonly Choice[]): InputKind<Choice>['read'] {
  return (value, name) => {
    if ((choices as readonly Value[]).includes(value)) return value as Choice
    const shown = value instanceof Tensor ? 'a tensor' : pythonRepr(value as JsonValue)
    throw new NodeError('ValueError', `${name}: ${shown} not in ${pythonRepr([...choices])}`)
  }
}

/** A combo as old-style classes declare it: the list of choices is the type. */
export function choice<const Choice extends string>(choices: readonly Choice[]): InputKind<Choice> {
  return { spec: [choices], read: readChoice(choices) }
}

/** A combo as schema-style classes declare it. */
export function combo<const Choice extends string>(
  choices: readonly Choice[],
  options: InputOptions = {},
): InputKind<Choice> {
  return { spec: ['COMBO', { multiselect: false, options: choices, ...options }], read: readChoice(choices) }
}

/** The name of an input file. The list of choices stays empty: names are judged against the files that the run is given. */
export function inputFile(options: InputOptions): InputKind<string> {
  const { read } = string()
  return { spec: [[], options], read }
}

/** Anything at all. */
export function anything(options?: InputOptions): InputKind<Value> {
  return { spec: asSpec('*', options), read: (value) => value }
}

/** A value of a named type that the node judges itself: `DICT`, or a union such as `INT,FLOAT`. */
export function ofType(type: string, options: InputOptions = {}): InputKind<Value> {
  return { spec: [type, options], read: (value) => value }
}

/** A switch that takes whatever a link brings by its truth, as Python's `if` does. */
export function truth(options: InputOptions = {}): InputKind<boolean> {
  return { spec: ['BOOLEAN', options], read: (value) => pyTruth(toPyValue(value)) }
}

/** A colour as text; the node checks what it looks like. */
export function color(options: InputOptions): InputKind<string> {
  return {
    spec: ['COLOR', options],
    read(value, name) {
      if (typeof value === 'string') return value
      throw new NodeError('TypeError', `${name}: expected a colour such as #ffffff, got '${valueTypeName(value)}'`)
    },
  }
}

interface BoundingBox {
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
