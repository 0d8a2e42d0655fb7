/** What a node was given, for the report of its failure: plain values as they are, everything else described, nothing long. */
import { NumberText } from '../../../lib/json/lossless-json.ts'
import { Tensor } from '../../tensor/tensor.ts'
import { type Slot, type Value, valueTypeName } from '../../values/value.ts'

export type ShownInputs = Readonly<Record<string, readonly unknown[]>>

const MAX_TEXT_LENGTH = 1000
const MAX_VALUES = 100
const MAX_INPUTS = 100

export function showInputs(lists: ReadonlyMap<string, Slot> | undefined): ShownInputs {
  const shown = [...(lists ?? [])].slice(0, MAX_INPUTS)
  // Not by assignment: an input may be called `__proto__`.
  return Object.fromEntries(shown.map(([name, values]) => [name, values.slice(0, MAX_VALUES).map(showValue)]))
}

function showValue(value: Value): unknown {
  if (value === null || typeof value === 'boolean' || typeof value === 'number') return value
  if (typeof value === 'string') return value.slice(0, MAX_TEXT_LENGTH)
  if (value instanceof NumberText) return Number(value.text)
  if (typeof value === 'bigint') return String(value)
  if (value instanceof Tensor) return `tensor of [${value.shape.join(', ')}]`
  return `a value of type ${valueTypeName(value)}`
}
