/**
 * A sub-graph under construction by a node that expands. Ids are "{node}.{call}.{graph}.{local}": unique within a run,
 * and readable in events.
 */
import type { Value } from '../values/value.ts'

export interface BuiltNode {
  readonly id: string
  readonly classType: string
  /** Constants of any kind, tensors included, and links. */
  readonly inputs: Readonly<Record<string, Value>>
}

export type Link = [nodeId: string, slot: number]

export class GraphBuilder {
  readonly nodes: BuiltNode[] = []
  readonly #prefix: string

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  /** Adds a node and returns a function that gives links to its output slots. */
  node(classType: string, inputs: Readonly<Record<string, Value>>, localId?: string): (slot: number) => Link {
    const id = this.#prefix + (localId ?? String(this.nodes.length + 1))
    this.nodes.push({ id, classType, inputs })
    return (slot) => [id, slot]
  }
}
