/**
 * Values on their way between threads. Structured cloning drops classes, so those that matter are tagged; tensor memory is
 * shared, not copied. Both directions are total: what goes in comes out equal.
 */
import { NumberText } from '../../lib/json/lossless-json.ts'
import { type SharedFloats, Tensor } from '../tensor/tensor.ts'
import { Blocker, type Value, type ValueObject } from './value.ts'

type Tagged =
  | { readonly $: 'tensor'; readonly shape: readonly number[]; readonly data: SharedFloats }
  | { readonly $: 'number'; readonly text: string }
  | { readonly $: 'blocker'; readonly message: string | null }
  | { readonly $: 'object'; readonly entries: readonly (readonly [string, WireValue])[] }

export type WireValue = null | boolean | number | bigint | string | WireValue[] | Tagged

export function toWire(value: Value): WireValue {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(toWire)
  if (value instanceof Tensor) return { $: 'tensor', shape: value.shape, data: value.data }
  if (value instanceof NumberText) return { $: 'number', text: value.text }
  if (value instanceof Blocker) return { $: 'blocker', message: value.message }
  return { $: 'object', entries: Object.entries(value).map(([key, part]) => [key, toWire(part)] as const) }
}

/** The buffer to use for one that came from another thread; see the memory ledger. */
export type Recognise = (buffer: SharedArrayBuffer) => SharedArrayBuffer

const asItIs: Recognise = (buffer) => buffer

function toTensor({ shape, data }: Extract<Tagged, { $: 'tensor' }>, recognise: Recognise): Tensor {
  return new Tensor(shape, new Float32Array(recognise(data.buffer), data.byteOffset, data.length))
}

const READERS: { readonly [Tag in Tagged['$']]: (wire: Extract<Tagged, { $: Tag }>, recognise: Recognise) => Value } = {
  tensor: toTensor,
  number: (wire) => new NumberText(wire.text),
  blocker: (wire) => new Blocker(wire.message),
  // fromEntries defines own properties, so a key such as __proto__ stays an ordinary key.
  object: (wire, recognise) =>
    Object.fromEntries(wire.entries.map(([key, part]) => [key, fromWire(part, recognise)])) as ValueObject,
}

export function fromWire(wire: WireValue, recognise: Recognise = asItIs): Value {
  if (typeof wire !== 'object' || wire === null) return wire
  if (Array.isArray(wire)) return wire.map((part) => fromWire(part, recognise))
  return (READERS[wire.$] as (wire: Tagged, recognise: Recognise) => Value)(wire, recognise)
}

export type WireRecord = Readonly<Record<string, WireValue>>

export function toWireRecord(values: Readonly<Record<string, Value>>): WireRecord {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, toWire(value)]))
}

export function fromWireRecord(wire: WireRecord, recognise: Recognise = asItIs): Record<string, Value> {
  return Object.fromEntries(Object.entries(wire).map(([key, value]) => [key, fromWire(value, recognise)]))
}
