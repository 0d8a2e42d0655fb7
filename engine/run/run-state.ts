/** What all parts of one run share. Made once per run by run-graph.ts; nothing in it outlives the run. */
import type { RunModelCall } from '../../src/domain/engine/model-port.ts'
import type { NodeTable } from '../define-node.ts'
import type { Graph } from '../graph/graph.ts'
import type { CallHost } from '../node-call.ts'
import type { InputFile, MadeReport } from '../node-context.ts'
import type { MemoryLedger } from '../tensor/memory.ts'
import type { Blocker, Slot } from '../value.ts'
import type { NodeCalls } from './call-node.ts'
import type { EventLine } from './event-line.ts'
import type { LiveGraph } from './live-graph.ts'
import type { CallOutputs } from './map-calls.ts'
import type { CacheEntry, ResultCache } from './result-cache.ts'
import type { RunEvent } from './run-event.ts'
import type { RunResults } from './run-results.ts'
import type { Schedule } from './schedule.ts'
import type { Signatures } from './signature.ts'
import type { RunValues, ValueBudget } from './value-budget.ts'

/** What the run was asked to do. */
export interface RunRequest {
  readonly accountId: string
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
  hasRoom(): boolean
  /** Resolves when whoever reads the events has caught up. */
  room(): Promise<void>
  /** This run is what the thread works on from now on: if the thread is lost, it was this one. */
  atWork(): void
  isCancelled(): boolean
  /** Resolves when the run is cancelled. */
  readonly cancelled: Promise<void>
  reserveNumbers: CallHost['reserveNumbers']
  runModel: RunModelCall
  instanceLetters(accountId: string, nodeId: string, classType: string): string
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
  /** The inputs of nodes that are at work: whoever fails is asked for them. */
  readonly given: Map<string, ReadonlyMap<string, Slot>>
  /** Blockers whose message has been told: each speaks once. */
  readonly toldBlockers: WeakSet<Blocker>
}
