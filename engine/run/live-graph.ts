/**
 * The graph of one run: the submitted nodes plus those that expansion adds while it runs. Knows who reads whom; knows
 * nothing of order, values or caching.
 */

import type { JsonObject } from '../../lib/json/lossless-json.ts'
import { declaredInputs } from '../graph/dynamic-inputs.ts'
import type { Graph } from '../graph/graph.ts'
import { readNodeSpec } from '../graph/input-specs.ts'
import type { NodeRef } from '../graph/run-event.ts'
import type { EngineNode, NodeTable } from '../node/define-node.ts'
import type { BuiltNode, Link } from '../node/node-context.ts'
import { NodeError } from '../node/node-error.ts'
import type { Value } from '../values/value.ts'

export interface LiveNode {
  readonly id: string
  readonly node: EngineNode
  readonly inputs: Readonly<Record<string, Value>>
  readonly ref: NodeRef
  /** The submitted node that this one works for; itself unless it was made by expansion. */
  readonly realId: string
}

export function isLinkValue(value: Value): value is Link {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === 'string' && typeof value[1] === 'number'
}

/** Inputs that the class declares for what was given, by their key in the graph. */
export function declarationsOf(live: LiveNode) {
  return declaredInputs(readNodeSpec(live.node.definition), live.inputs as JsonObject)
}

export class LiveGraph {
  readonly #nodes = new Map<string, LiveNode>()
  readonly #table: NodeTable

  constructor(graph: Graph, table: NodeTable) {
    this.#table = table
    for (const [id, { classType, inputs }] of graph) {
      const ref = { nodeId: id, classType, displayNodeId: id, parentNodeId: null }
      this.#nodes.set(id, { id, node: this.#classOf(classType), inputs, ref, realId: id })
    }
  }

  #classOf(classType: string): EngineNode {
    const node = this.#table.get(classType)
    if (node === undefined) throw new NodeError('KeyError', `this engine has no node class ${classType}`)
    return node
  }

  has(id: string): boolean {
    return this.#nodes.has(id)
  }

  get(id: string): LiveNode {
    const node = this.#nodes.get(id)
    if (node === undefined) throw new NodeError('KeyError', `a link leads to node ${id}, which does not exist`)
    return node
  }

  ids(): Iterable<string> {
    return this.#nodes.keys()
  }

  outputIds(): string[] {
    return [...this.#nodes.values()].filter(({ node }) => node.definition.output_node).map(({ id }) => id)
  }

  addChild(parent: LiveNode, built: BuiltNode): LiveNode {
    if (this.#nodes.has(built.id)) throw new NodeError('DuplicateNodeError', `node ${built.id} exists already`)
    const { displayNodeId } = parent.ref
    const ref = { nodeId: built.id, classType: built.classType, displayNodeId, parentNodeId: parent.id }
    const child = {
      id: built.id,
      node: this.#classOf(built.classType),
      inputs: built.inputs,
      ref,
      realId: parent.realId,
    }
    this.#nodes.set(built.id, child)
    return child
  }

  /** Producers over all links, lazy ones included, in the order of the inputs. */
  allProducers(id: string): string[] {
    return Object.values(this.get(id).inputs).flatMap((value) => (isLinkValue(value) ? [value[0]] : []))
  }

  /** Producers over links that count from the start: not those of lazy inputs. */
  firstProducers(id: string): string[] {
    const live = this.get(id)
    const lazy = live.node.asksLazily ? lazyNames(live) : NO_NAMES
    return Object.entries(live.inputs).flatMap(([name, value]) =>
      isLinkValue(value) && !lazy.has(name) ? [value[0]] : [],
    )
  }

  /** Every node that the given ones depend on, themselves included. */
  reachableFrom(ids: readonly string[]): Set<string> {
    const reached = new Set<string>()
    const stack = [...ids]
    for (let id = stack.pop(); id !== undefined; id = stack.pop()) {
      if (reached.has(id) || !this.#nodes.has(id)) continue
      reached.add(id)
      stack.push(...this.allProducers(id))
    }
    return reached
  }
}

const NO_NAMES: ReadonlySet<string> = new Set()

function lazyNames(live: LiveNode): ReadonlySet<string> {
  const lazy = declarationsOf(live).filter((input) => input.options.lazy === true)
  return new Set(lazy.map((input) => input.path))
}
