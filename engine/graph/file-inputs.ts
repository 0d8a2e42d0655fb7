/**
 * Which inputs of a node name a file of the caller. The declaration says so with an upload option; the few nodes that take a
 * file without one are named by the catalog.
 */

import { declaredInputs } from './dynamic-inputs.ts'
import { type DeclaredInput, type NodeSpec, readNodeSpec } from './input-specs.ts'
import type { NodeCatalog } from './node-catalog.ts'
import type { JsonObject } from '../../lib/json/lossless-json.ts'

export interface FileInput {
  readonly path: string
  /** The word in "Invalid image file: x". */
  readonly noun: string
  /** An empty text means that no file is wanted: only free text inputs have that, a choice always names one. */
  readonly mayBeEmpty: boolean
}

function toFileInput(input: DeclaredInput, named: readonly string[]): FileInput | null {
  const noun = input.upload ?? (named.includes(input.path) ? input.name : null)
  return noun === null ? null : { path: input.path, noun, mayBeEmpty: input.type === 'STRING' }
}

const NONE: readonly FileInput[] = []
const known = new WeakMap<NodeSpec, readonly FileInput[]>()

/** The file inputs of a node of this class; `given` matters only for classes with dynamic inputs. */
export function findFileInputs(catalog: NodeCatalog, classType: string, given: JsonObject): readonly FileInput[] {
  const definition = catalog.find(classType)
  if (definition === null) return NONE
  const spec = readNodeSpec(definition)
  let inputs = known.get(spec)
  if (inputs === undefined || spec.isDynamic) {
    const named = catalog.fileInputs?.(classType) ?? catalog.selfCheckedInputs(classType)
    inputs = declaredInputs(spec, given)
      .map((input) => toFileInput(input, named))
      .filter((input) => input !== null)
    known.set(spec, inputs)
  }
  return inputs
}
