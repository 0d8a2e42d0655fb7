/** What all parts of one run share. Made once per run by run-graph.ts; nothing in it outlives the run. */

import type { Graph } from '../graph/graph.ts'
import type { ModelAnswer, ModelCall } from '../graph/model-call.ts'
import type { NodeTable } from '../node/define-node.ts'
import type { CallHost } from '../node/node-call.ts'
import type { InputFile, MadeReport } from '../node/node-context.ts'
import type { MemoryLedger } from '../tensor/memory-ledger.ts'
import type { Blocker, Slot } from '../values/value.ts'
import type { RunValues, ValueBudget } from '../values/value-budget.ts'
import type { NodeCalls } from './calls/call-node.ts'
import type { CallOutputs } from './calls/map-calls.ts'
import type { EventLine } from './events/event-line.ts'
import type { RunEvent, SentReport } from './events/made-event.ts'
import type { LiveGraph } from './live-graph.ts'
import type { CacheEntry, ResultCache } from './results/result-cache.ts'
import type { RunResults } from './results/run-results.ts'
import type { Signatures } from './results/signature.ts'
import type { Schedule } from './schedule.ts'

/** What the run was asked to do. */
export interface RunRequest {
  /** Results and names of previews are shared only among runs of one owner. */
  readonly owner: string
  readonly graph: Graph
  readonly files: Readonly<Record<string, InputFile>>
  readonly promptText: string
  readonly extraPngInfoText: string | null
}

/** What the engine lends to the run. */
export interface RunDeps {
  readonly table: NodeTable
  readonly cache: ResultCache
  readonly ledger: MemoryLedger
  readonly values: ValueBudget
  readonly callNode: NodeCalls
  /** How many calls may be out at once. */
  readonly maxInFlight: number
  readonly maxImagePixels: number
  emit(event: RunEvent): void
  /** To be called before a report is emitted: the bytes of large files travel beside it. */
  setAside(report: MadeReport): SentReport | Promise<SentReport>
  hasRoom(): boolean
  /** Resolves when whoever reads the events has caught up. */
  room(): Promise<void>
  /** From now on the thread works on this run: if the thread is lost, this run counts as the cause. */
  atWork(): void
  isCancelled(): boolean
  /** Resolves when the run is cancelled. */
  readonly cancelled: Promise<void>
  reserveNumbers: CallHost['reserveNumbers']
  runModel(call: ModelCall): Promise<ModelAnswer>
  instanceLetters(owner: string, nodeId: string, classType: string): string
  nowMs(): number
}

/** A node that answered with a sub-graph and waits for it. */
export interface PendingExpansion {
  readonly report: MadeReport | null
  /** The outputs of each call: values, or links into the graph that the call returned. */
  readonly calls: readonly { readonly outputs: CallOutputs; readonly hasLinks: boolean }[]
}

export interface RunState {
  readonly request: RunRequest
  readonly deps: RunDeps
  readonly graph: LiveGraph
  readonly signatures: Signatures
  readonly schedule: Schedule
  readonly results: RunResults
  readonly values: RunValues
  readonly line: EventLine
  /** Cached nodes whose old report is to be repeated. */
  readonly hits: Map<string, CacheEntry>
  /** Lazy inputs that their node has asked for, by node. */
  readonly asked: Map<string, Set<string>>
  readonly expansions: Map<string, PendingExpansion>
  readonly executed: Set<string>
  /** The inputs of nodes that are at work, for the report when one of them fails. */
  readonly given: Map<string, ReadonlyMap<string, Slot>>
  /** Blockers whose message has been sent: each is sent once. */
  readonly toldBlockers: WeakSet<Blocker>
}
