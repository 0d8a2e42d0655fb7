/**
 * Reads a two-element array as a link. A link to a missing node or slot raises an exception in ComfyUI instead of being reported
 * as an error. The same exception is thrown here as a PythonError, and validate.ts records it where ComfyUI does.
 */
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import { PythonError } from '../../../lib/python/numbers.ts'
import { pythonRepr, pythonTypeName, toNumeric } from '../../../lib/python/values.ts'
import type { DeclaredInput, NodeSpec } from '../input-specs.ts'
import type { NodeError } from './validation-result.ts'

// What fits into the index type of a 64-bit Python.
const LARGEST_INDEX = 2n ** 63n - 1n

export function linkLengthError(input: DeclaredInput, value: JsonValue[]): NodeError {
  return {
    type: 'bad_linked_input',
    message: 'Bad linked input, must be a length-2 list of [node_id, slot_index]',
    details: input.path,
    extra_info: { input_name: input.path, input_config: input.config, received_value: value },
  }
}

export function linkTypeError(input: DeclaredInput, link: JsonValue[], received: unknown): NodeError {
  const types = `received_type(${showType(received)}) mismatch input_type(${showType(input.type)})`
  return {
    type: 'return_type_mismatch',
    message: 'Return type mismatch between linked nodes',
    details: `${input.path}, ${types}`,
    extra_info: {
      input_name: input.path,
      input_config: input.config,
      received_type: received,
      linked_node: link,
    },
  }
}

function showType(type: unknown): string {
  return typeof type === 'string' ? type : pythonRepr(type as JsonValue)
}

/** The id as a string, or the exception of looking anything else up among string keys. */
export function readLinkedId(value: JsonValue): string {
  if (typeof value === 'string') return value
  if (typeof value === 'object' && value !== null && toNumeric(value) === null) {
    throw new PythonError('TypeError', `unhashable type: '${pythonTypeName(value)}'`)
  }
  throw new PythonError('KeyError', pythonRepr(value))
}

export function missingNode(id: string): PythonError {
  return new PythonError('KeyError', pythonRepr(id))
}

/** The slot as an index into the outputs; negative ones count from the end, as they do in Python. */
export function readSlot(value: JsonValue, { outputTypes, outputSequence }: NodeSpec): number {
  const slot = toNumeric(value)
  if (typeof slot !== 'bigint') {
    const type = pythonTypeName(value)
    throw new PythonError('TypeError', `${outputSequence} indices must be integers or slices, not ${type}`)
  }
  if (slot > LARGEST_INDEX || slot < -LARGEST_INDEX) {
    throw new PythonError('IndexError', "cannot fit 'int' into an index-sized integer")
  }
  const index = slot < 0n ? Number(slot) + outputTypes.length : Number(slot)
  if (index < 0 || index >= outputTypes.length) {
    throw new PythonError('IndexError', `${outputSequence} index out of range`)
  }
  return index
}
