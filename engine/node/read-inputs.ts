/** Turns raw values into what a node's `run` expects, each through its declared kind. */

import { type Value, valueTypeName } from '../values/value.ts'
import type { EngineNode } from './define-node.ts'
import type { ReadInputs } from './node-context.ts'
import { NodeError } from './node-error.ts'

/** Inputs of dynamic groups have no kind of their own here; they are handed over as they are. */
export function readInputs(node: EngineNode, inputs: Readonly<Record<string, Value>>): ReadInputs {
  const isList = node.definition.is_input_list
  const read: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(inputs)) {
    const kind = Object.hasOwn(node.inputKinds, name) ? node.inputKinds[name] : null
    if (kind === null) read[name] = value
    else read[name] = isList ? asList(value, name).map((part) => kind.read(part, name)) : kind.read(value, name)
  }
  return read
}

function asList(value: Value, name: string): readonly Value[] {
  if (!Array.isArray(value)) throw new NodeError('TypeError', `${name}: expected a list, got '${valueTypeName(value)}'`)
  return value
}
