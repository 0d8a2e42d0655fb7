/**
 * How far one run is, node by node, folded from its events: for `progress_state`, which shows all nodes each time, for errors,
 * which name the nodes that have run, and for clients that connect in the middle. The text of each node is kept, because it is
 * sent again and again and rarely changes.
 */
import type { NodeRef } from '../../../../engine/graph/run-event.ts'
import type { LiveEvent } from '../../../domain/events/live-event.ts'

type NodeState = 'running' | 'finished'

interface NodeEntry {
  readonly ref: NodeRef
  readonly value: string
  readonly max: string
  readonly state: NodeState
  /** Made on first use. */
  json: string | null
}

// Python writes these two as floats; the numbers that a node reports are written as they came.
const START = '0.0'
const WHOLE = '1.0'

export class RunProgress {
  readonly jobId: string
  readonly accountId: string
  readonly #idJson: string
  readonly #nodes = new Map<string, NodeEntry>()
  readonly #running = new Map<string, NodeRef>()
  readonly #executed: string[] = []
  readonly #hasExecuted = new Set<string>()
  /** The node that clients were last shown as executing. */
  lastNode: NodeRef | null = null
  /** When `progress_state` was last told, and whether more happened since. */
  toldAt = Number.NEGATIVE_INFINITY
  isStateDue = false

  constructor(jobId: string, accountId: string) {
    this.jobId = jobId
    this.accountId = accountId
    this.#idJson = JSON.stringify(jobId)
  }

  get nodeCount(): number {
    return this.#nodes.size
  }

  /** Nodes that this run itself has finished: not those that were cached. */
  get executed(): readonly string[] {
    return this.#executed
  }

  /** The submitted node that is running, of several the one that began last; otherwise the last one that ran. */
  get current(): NodeRef | null {
    const ref = [...this.#running.values()].at(-1) ?? this.lastNode
    return ref === null ? null : (this.#nodes.get(ref.displayNodeId)?.ref ?? ref)
  }

  take(event: LiveEvent): void {
    if (event.type === 'node_started') this.#start(event)
    else if (event.type === 'node_progress') this.#step(event)
    else if (event.type === 'node_finished') this.#finish(event)
  }

  /** The `nodes` of a `progress_state`: every node that has begun. */
  nodesJson(): string {
    let json = '{'
    for (const entry of this.#nodes.values()) {
      entry.json ??= this.#toJson(entry)
      json += json === '{' ? entry.json : `,${entry.json}`
    }
    return `${json}}`
  }

  #start(ref: NodeRef): void {
    this.lastNode = ref
    this.#running.delete(ref.nodeId)
    this.#running.set(ref.nodeId, ref)
    this.#put(ref, { value: START, max: WHOLE, state: 'running' })
  }

  #step(event: Extract<LiveEvent, { type: 'node_progress' }>): void {
    this.#put(event, { value: toNumber(event.value), max: toNumber(event.max), state: 'running' })
  }

  #finish(ref: NodeRef): void {
    if (this.#running.delete(ref.nodeId) && !this.#hasExecuted.has(ref.nodeId)) {
      this.#hasExecuted.add(ref.nodeId)
      this.#executed.push(ref.nodeId)
    }
    const max = this.#nodes.get(ref.nodeId)?.max ?? WHOLE
    this.#put(ref, { value: max, max, state: 'finished' })
  }

  #put(ref: NodeRef, shown: Pick<NodeEntry, 'value' | 'max' | 'state'>): void {
    this.#nodes.set(ref.nodeId, { ref, ...shown, json: null })
  }

  #toJson({ ref, value, max, state }: NodeEntry): string {
    const id = JSON.stringify(ref.nodeId)
    const display = JSON.stringify(ref.displayNodeId)
    return (
      `${id}:{"value":${value},"max":${max},"state":"${state}","node_id":${id},"prompt_id":${this.#idJson},` +
      `"display_node_id":${display},"parent_node_id":${JSON.stringify(ref.parentNodeId)},"real_node_id":${display}}`
    )
  }
}

function toNumber(value: number): string {
  return Number.isFinite(value) ? String(value) : '0'
}
