/** The graph of one run, which may grow while it runs, and which of its nodes comes next. */
import type { JsonObject } from '../../lib/json/lossless-json.ts'
import type { Graph } from '../graph/graph.ts'
import { declaredInputs, readNodeSpec } from '../graph/input-specs.ts'
import type { NodeRef } from '../graph/run-event.ts'
import type { EngineNode, NodeTable } from '../node/define-node.ts'
import type { BuiltNode, Link } from '../node/node-context.ts'
import { NodeError } from '../node/node-error.ts'
import type { Value } from '../values/value.ts'

interface ScheduleDeps {
  /** Producers over links that count from the start, in the order of the node's inputs. */
  producersOf(nodeId: string): readonly string[]
  isCached(nodeId: string): boolean
  isOutput(nodeId: string): boolean
}

interface Pending {
  readonly id: string
  readonly sequence: number
  readonly isOutput: boolean
  readonly blocks: Set<string>
  waitsFor: number
  isTaken: boolean
}

const RANKS = 4

/**
 * In which order nodes run; pure. A node waits for the producers of its links; among the ready ones an output node comes
 * first, then a node that feeds an output node, then one two steps before it, then the rest, each in the order in which
 * they were added. So previews appear as early as they can. Links of lazy inputs are added only when they are asked for.
 */
export class Schedule {
  readonly #deps: ScheduleDeps
  readonly #pending = new Map<string, Pending>()
  readonly #done = new Set<string>()
  #sequence = 0
  #ready = createReadyQueue()

  constructor(deps: ScheduleDeps) {
    this.#deps = deps
  }

  /** Adds nodes with everything they wait for. */
  add(nodeIds: readonly string[]): void {
    for (const id of nodeIds) this.#addWithProducers(id)
    this.#rankAnew()
  }

  /** Makes `consumer` wait for `producer`, unless that is cached or done. */
  addLink(producer: string, consumer: string): void {
    if (this.#deps.isCached(producer) || this.#done.has(producer)) return
    this.#addWithProducers(producer)
    this.#link(producer, consumer)
    this.#rankAnew()
  }

  /** Takes the next node to run, or null when none is ready. It stays pending until completed or put back. */
  next(): string | null {
    for (let id = this.#ready.pop(); id !== null; id = this.#ready.pop()) {
      const node = this.#pending.get(id)
      // An entry can be out of date: its node got something more to wait for.
      if (node === undefined || !this.#isReady(node)) continue
      node.isTaken = true
      return id
    }
    return null
  }

  complete(nodeId: string): void {
    const node = this.#pending.get(nodeId)
    if (node === undefined) return
    this.#pending.delete(nodeId)
    this.#done.add(nodeId)
    for (const id of node.blocks) {
      const blocked = this.#pending.get(id)
      if (blocked === undefined) continue
      blocked.waitsFor -= 1
      if (this.#isReady(blocked)) this.#ready.push(blocked.sequence, this.#rankOf(blocked), id)
    }
  }

  /** The node has more to wait for, or must be looked at again. */
  putBack(nodeId: string): void {
    const node = this.#pending.get(nodeId)
    if (node === undefined) return
    node.isTaken = false
    if (this.#isReady(node)) this.#ready.push(node.sequence, this.#rankOf(node), nodeId)
  }

  isEmpty(): boolean {
    return this.#pending.size === 0
  }

  /** Nodes that wait for each other, in order around the loop; empty when there is no loop. */
  findCycle(): readonly string[] {
    return findCycle(this.#pending)
  }

  #addPending(id: string): Pending {
    const node = {
      id,
      sequence: this.#sequence++,
      isOutput: this.#deps.isOutput(id),
      blocks: new Set<string>(),
      waitsFor: 0,
      isTaken: false,
    }
    this.#pending.set(id, node)
    return node
  }

  #rankOf(node: Pending): number {
    if (node.isOutput) return 0
    let best = 3
    for (const id of node.blocks) {
      const blocked = this.#pending.get(id)
      if (blocked?.isOutput) return 1
      if (best > 2 && blocked !== undefined && this.#blocksOutput(blocked)) best = 2
    }
    return best
  }

  #blocksOutput(node: Pending): boolean {
    for (const id of node.blocks) if (this.#pending.get(id)?.isOutput) return true
    return false
  }

  #isReady(node: Pending): boolean {
    return node.waitsFor === 0 && !node.isTaken
  }

  // A new link can change the rank of nodes up to two steps above it. Links come late only with lazy inputs and expansion,
  // so ranking the few ready nodes anew is cheaper than keeping track.
  #rankAnew(): void {
    this.#ready = createReadyQueue()
    for (const node of this.#pending.values())
      if (this.#isReady(node)) this.#ready.push(node.sequence, this.#rankOf(node), node.id)
  }

  #link(producer: string, consumer: string): void {
    const from = this.#pending.get(producer)
    const to = this.#pending.get(consumer)
    if (from === undefined || to === undefined || from.blocks.has(consumer)) return
    from.blocks.add(consumer)
    to.waitsFor += 1
  }

  #addWithProducers(nodeId: string): void {
    const { isCached, producersOf } = this.#deps
    const stack = [nodeId]
    const links: [string, string][] = []
    for (let id = stack.pop(); id !== undefined; id = stack.pop()) {
      if (this.#pending.has(id) || this.#done.has(id)) continue
      this.#addPending(id)
      // A cached node only has its old report repeated: what it was made from is not needed.
      if (isCached(id)) continue
      for (const producer of producersOf(id)) {
        if (isCached(producer) || this.#done.has(producer)) continue
        stack.push(producer)
        links.push([producer, id])
      }
    }
    for (const [producer, consumer] of links) this.#link(producer, consumer)
  }
}

/** Follows "blocked by" from any stuck node: every one of them leads into the loop that blocks it. */
function findCycle(pending: ReadonlyMap<string, Pending>): readonly string[] {
  const blockedBy = new Map<string, string>()
  for (const node of pending.values()) for (const id of node.blocks) if (pending.has(id)) blockedBy.set(id, node.id)
  const [start] = blockedBy.keys()
  const seen = new Map<string, number>()
  for (let id: string | undefined = start; id !== undefined; id = blockedBy.get(id)) {
    const firstSeen = seen.get(id)
    if (firstSeen !== undefined) return [...seen.keys()].slice(firstSeen)
    seen.set(id, seen.size)
  }
  return []
}

/** Ready nodes: one binary heap per rank, ordered by when the node was added. */
function createReadyQueue() {
  const heaps = Array.from({ length: RANKS }, () => [] as { sequence: number; id: string }[])

  function push(sequence: number, rank: number, id: string): void {
    const heap = heaps[rank]
    let at = heap.length
    heap.push({ sequence, id })
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (heap[parent].sequence <= heap[at].sequence) return
      ;[heap[parent], heap[at]] = [heap[at], heap[parent]]
      at = parent
    }
  }

  function pop(): string | null {
    const heap = heaps.find((candidate) => candidate.length > 0)
    if (heap === undefined) return null
    const top = heap[0].id
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return top
    heap[0] = last
    for (let at = 0; ; ) {
      const left = 2 * at + 1
      const right = left + 1
      let least = at
      if (left < heap.length && heap[left].sequence < heap[least].sequence) least = left
      if (right < heap.length && heap[right].sequence < heap[least].sequence) least = right
      if (least === at) return top
      ;[heap[least], heap[at]] = [heap[at], heap[least]]
      at = least
    }
  }

  return { push, pop }
}

// The graph of one run: the submitted nodes plus those that expansion adds while it runs. Knows who reads whom; knows
// nothing of order, values or caching.

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
