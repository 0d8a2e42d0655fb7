/** Finds the nodes of a graph that run a partner's model: these cost extra and need a scope of their own. */

import type { JsonValue } from '../../lib/json/lossless-json.ts'
import { type Graph, type GraphNode, isLink } from './graph.ts'
import type { NodeCatalog } from './node-catalog.ts'

export const RUN_MODEL_CLASS = 'RunModel'

export interface ModelNode {
  readonly nodeId: string
  /** null: the id comes from another node while the graph runs. */
  readonly model: string | null
}

export function findModelNodes(graph: Graph): readonly ModelNode[] {
  const found: ModelNode[] = []
  for (const [nodeId, { classType, inputs }] of graph) {
    if (classType !== RUN_MODEL_CLASS) continue
    const model = inputs['model']
    found.push({ nodeId, model: typeof model === 'string' ? model.trim() : null })
  }
  return found
}

// The request of a node that runs a provider's model, and the answer. The owner of the engine decides how models are run.

export interface ModelCall {
  /** The canonical id, `{provider}/{model}`. */
  readonly model: string
  readonly input: JsonValue
  /** PNG files that belong to the input. */
  readonly images: readonly Uint8Array<ArrayBuffer>[]
  /** Identifies the call within the run. It is the same when the graph is run again, so that a repeated run does not pay twice. */
  readonly key: string
}

/** Pictures that one answer has at most. */
export const MAX_MODEL_IMAGES = 64

export interface ModelAnswer {
  /** The provider's answer. */
  readonly output: JsonValue
  /** Image files that belong to it, in any format that can be decoded. */
  readonly images: readonly Uint8Array[]
}

// How often a node is called in a run, as far as its graph tells: once, or once for each member of the longest list that it is given.
// Where the length of a list follows from data alone, the bound is the caller's. Pure.

interface CallBounds {
  /** A class that it does not have may give lists. */
  readonly catalog: Pick<NodeCatalog, 'find' | 'folderInputs'>
  /** How many files belong to the run: a list of what lies in a folder is not longer. */
  readonly files: number
  /** For lists whose length only the run knows. */
  readonly maxListLength: number
}

export function createCallCounts(graph: Graph, { catalog, files, maxListLength }: CallBounds): (id: string) => number {
  const counts = new Map<string, number>()
  const toBounded = (length: number) => Math.min(length, maxListLength)

  /** The lists that its links bring, once the calls of their sources are known. */
  function lengthsOf({ inputs }: GraphNode): number[] {
    return Object.values(inputs).flatMap((value) => (isLink(value) ? [lengthOf(value)] : []))
  }

  function lengthOf([sourceId, slot]: [string, number]): number {
    const source = graph.get(sourceId)
    const definition = source === undefined ? null : catalog.find(source.classType)
    if (source === undefined || definition === null) return maxListLength
    const calls = counts.get(sourceId) ?? maxListLength
    if (definition.output_is_list[slot] !== true) return calls
    if (source.classType === 'CreateList') return toBounded(sum(lengthsOf(source)) || 1)
    if (source.classType === RUN_MODEL_CLASS) return toBounded(calls * MAX_MODEL_IMAGES)
    return (catalog.folderInputs?.(source.classType) ?? []).length > 0 ? toBounded(calls * files) : maxListLength
  }

  function countOf(node: GraphNode): number {
    const definition = catalog.find(node.classType)
    return definition?.is_input_list === true ? 1 : lengthsOf(node).reduce((most, length) => Math.max(most, length), 1)
  }

  // Sources first, without recursion: a chain may have thousands of nodes. A node of a circle is never called.
  return function callsOf(id) {
    const open = new Set<string>()
    const stack = [id]
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const node = graph.get(top)
      const sources = open.has(top) || node === undefined ? [] : sourcesOf(node)
      open.add(top)
      for (const each of sources) if (!counts.has(each) && !open.has(each)) stack.push(each)
      if (stack.at(-1) !== top) continue
      if (node !== undefined) counts.set(top, countOf(node))
      stack.pop()
    }
    return counts.get(id) ?? 0
  }
}

function sourcesOf({ inputs }: GraphNode): string[] {
  return Object.values(inputs).flatMap((value) => (isLink(value) ? [value[0]] : []))
}

function sum(lengths: readonly number[]): number {
  return lengths.reduce((total, length) => total + length, 0)
}
