/**
 * Which weights a graph needs: what its loaders choose from the lists of installed files. For placing jobs on workers that
 * already have them loaded; a wrong guess costs time, never correctness.
 */
import { choicesOf } from './constant-rules.ts'
import { declaredInputs } from './dynamic-inputs.ts'
import type { Graph } from './graph.ts'
import { readNodeSpec } from './input-specs.ts'
import type { NodeCatalog } from './node-catalog.ts'

const WEIGHTS = /\.(?:safetensors|sft|ckpt|pt|pt2|pth|bin|pkl|gguf|onnx)$/i

/** Distinct names in alphabetical order. */
export function modelRefs(graph: Graph, catalog: NodeCatalog): readonly string[] {
  const names = new Set<string>()
  for (const { classType, inputs } of graph.values()) {
    const definition = catalog.find(classType)
    if (definition === null) continue
    for (const input of declaredInputs(readNodeSpec(definition), inputs)) {
      const value = Object.hasOwn(inputs, input.path) ? inputs[input.path] : null
      if (typeof value === 'string' && WEIGHTS.test(value) && choicesOf(input) !== null) names.add(value)
    }
  }
  return [...names].sort()
}
