/**
 * Values between the engine and a custom node. Tensors are copied both ways: a node that writes into its inputs, or goes
 * on writing after it has returned, can never change what other nodes, other jobs or the cache read.
 * What a node returns is trusted in nothing: kinds, shapes, nesting and size are checked here.
 */
import { NumberText } from '../../lib/json/lossless-json.ts'
import { fromPythonNumber } from '../../lib/python/values.ts'
import { NodeError } from '../node/node-error.ts'
import { type Allocate, elementCount, Tensor } from '../tensor/tensor.ts'
import type { Value, ValueObject } from '../values/value.ts'
import type { OutputDeclaration } from './declaration.ts'

/** A value as `run` sees it. */
export function toUserValue(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Tensor) return { shape: [...value.shape], data: new Float32Array(value.data) }
  if (value instanceof NumberText) return value.value
  if (Array.isArray(value)) return value.map(toUserValue)
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, toUserValue(part)]))
}

const MAX_DEPTH = 64
// Plain values are cloned into the engine's own heap; what is larger belongs into a tensor.
const MAX_PLAIN_BYTES = 67_108_864
const MAX_RANK = 16

type Members = Readonly<Record<string, unknown>>

/** What one result may still use, and where its tensors go. */
interface Intake {
  readonly allocate: Allocate
  plainBytes: number
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value !== 'object') return typeof value
  const name: unknown = Object.getPrototypeOf(value)?.constructor?.name
  return typeof name === 'string' ? name : 'an object'
}

function refuse(where: string, wanted: string, value: unknown): never {
  throw new NodeError('TypeError', `${where}: expected ${wanted}, got ${typeName(value)}`)
}

function spend(intake: Intake, bytes: number, where: string): void {
  intake.plainBytes += bytes
  if (intake.plainBytes <= MAX_PLAIN_BYTES) return
  throw new NodeError('MemoryError', `${where}: more than 64 MiB of plain values; use a tensor`)
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isTensorLike(value: unknown): value is { shape: unknown; data: Float32Array } {
  return isMembers(value) && value['data'] instanceof Float32Array && 'shape' in value
}

function readShape(shape: unknown, where: string): readonly number[] {
  const isShape = Array.isArray(shape) && shape.length <= MAX_RANK
  const sides: unknown[] = isShape ? [...shape] : []
  if (isShape && sides.every((side) => Number.isSafeInteger(side) && (side as number) >= 0)) return sides as number[]
  const shown = isShape
    ? `[${sides.map((side) => (typeof side === 'number' ? side : typeName(side))).join(', ')}]`
    : typeName(shape)
  throw new NodeError('ValueError', `${where}: ${shown} is not a shape; give whole numbers from 0`)
}

function takeTensor(value: unknown, where: string, intake: Intake): Tensor {
  if (!isTensorLike(value)) refuse(where, 'a tensor {shape, data: Float32Array}', value)
  const { data } = value
  const shape = readShape(value.shape, where)
  if (elementCount(shape) !== data.length) {
    const message = `${where}: a shape of [${shape.join(', ')}] needs ${elementCount(shape)} values, data has ${data.length}`
    throw new NodeError('ValueError', message)
  }
  const result = intake.allocate(shape)
  result.data.set(data)
  return result
}

function takeRank(
  value: unknown,
  where: string,
  intake: Intake,
  ranks: readonly [least: number, most: number],
): Tensor {
  if (!isTensorLike(value)) refuse(where, 'a tensor {shape, data: Float32Array}', value)
  const [least, most] = ranks
  const rank = readShape(value.shape, where).length
  if (rank < least || rank > most) {
    throw new NodeError('ValueError', `${where}: expected ${least} dimensions, got ${rank}`)
  }
  return takeTensor(value, where, intake)
}

function takePlain(value: unknown, where: string, intake: Intake, depth = 0): Value {
  if (depth > MAX_DEPTH) throw new NodeError('TypeError', `${where}: nested deeper than ${MAX_DEPTH} levels`)
  spend(intake, typeof value === 'string' ? 16 + 2 * value.length : 16, where)
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' || typeof value === 'bigint') return value
  if (isTensorLike(value)) return takeTensor(value, where, intake)
  if (Array.isArray(value)) return value.map((part) => takePlain(part, where, intake, depth + 1))
  const prototype: unknown = typeof value === 'object' ? Object.getPrototypeOf(value) : undefined
  if (prototype !== Object.prototype && prototype !== null) refuse(where, 'a plain value', value)
  return takeMembers(value as Members, where, intake, depth)
}

function takeMembers(members: Members, where: string, intake: Intake, depth: number): ValueObject {
  const taken = Object.entries(members).map(([key, part]) => {
    spend(intake, 2 * key.length, where)
    return [key, takePlain(part, where, intake, depth + 1)] as const
  })
  return Object.fromEntries(taken)
}

function takeLatent(value: unknown, where: string, intake: Intake): Value {
  if (!isMembers(value)) refuse(where, 'a latent {samples}', value)
  const { samples, ...rest } = value
  return {
    samples: takeRank(samples, `${where}.samples`, intake, [4, MAX_RANK]),
    ...takeMembers(rest, where, intake, 0),
  }
}

function takeAudio(value: unknown, where: string, intake: Intake): Value {
  if (!isMembers(value)) refuse(where, 'audio {waveform, sampleRate}', value)
  const { waveform, sampleRate } = value
  if (!Number.isSafeInteger(sampleRate) || (sampleRate as number) < 1) {
    refuse(`${where}.sampleRate`, 'a whole number from 1', sampleRate)
  }
  return { waveform: takeRank(waveform, `${where}.waveform`, intake, [3, 3]), sample_rate: sampleRate as number }
}

function takeString(value: unknown, where: string, intake: Intake): string {
  if (typeof value !== 'string') refuse(where, 'a string', value)
  spend(intake, 2 * value.length, where)
  return value
}

function takeInt(value: unknown, where: string): number | bigint {
  if (typeof value === 'bigint' || (typeof value === 'number' && Number.isSafeInteger(value))) return value
  if (typeof value === 'number') throw new NodeError('ValueError', `${where}: ${value} is not a whole number`)
  refuse(where, 'a whole number', value)
}

function takeFloat(value: unknown, where: string): Value {
  if (typeof value !== 'number') refuse(where, 'a number', value)
  return Number.isInteger(value) ? fromPythonNumber(value) : value
}

const TAKE: Readonly<Record<OutputDeclaration['kind'], (value: unknown, where: string, intake: Intake) => Value>> = {
  image: (value, where, intake) => takeRank(value, where, intake, [4, 4]),
  mask: (value, where, intake) => takeRank(value, where, intake, [3, 3]),
  latent: takeLatent,
  audio: takeAudio,
  int: takeInt,
  // A float stays a float also when it is a whole number.
  float: (value, where) => takeFloat(value, where),
  string: takeString,
  boolean: (value, where) => (typeof value === 'boolean' ? value : refuse(where, 'true or false', value)),
  anything: takePlain,
  type: takePlain,
}

/** The result of `run` as one value per output slot. Throws NodeError for everything that its declaration does not say. */
export function takeOutputs(result: unknown, outputs: readonly OutputDeclaration[], allocate: Allocate): Value[] {
  const members = outputs.length === 0 ? (result ?? {}) : result
  const names = outputs.map(({ name }) => name)
  if (!isMembers(members)) refuse('the result', `an object with ${names.join(', ') || 'nothing'}`, members)
  const extra = Object.keys(members).find((name) => !names.includes(name))
  if (extra !== undefined)
    throw new NodeError('TypeError', `the result has ${extra}, which is not an output of this node`)
  const missing = names.find((name) => !Object.hasOwn(members, name))
  if (missing !== undefined) throw new NodeError('TypeError', `the result lacks the output ${missing}`)
  const intake: Intake = { allocate, plainBytes: 0 }
  return outputs.map(({ name, kind }) => TAKE[kind](members[name], `output ${name}`, intake))
}
