/** What all parts of one run share: its results and the line of its events. Made once per run by run-graph.ts; nothing in it outlives the run. */
import { NumberText } from '../../lib/json/lossless-json.ts'
import type { Graph } from '../graph/graph.ts'
import type { ModelAnswer, ModelCall } from '../graph/model-nodes.ts'
import type { EngineEvent, EngineFailure, NodeRef } from '../graph/run-event.ts'
import type { NodeTable } from '../node/define-node.ts'
import { type CallHost, type RunValues, type ValueBudget, weighJson, weighValues } from '../node/node-call.ts'
import type { InputFile, MadeFile, MadeReport, MadeValue } from '../node/node-context.ts'
import { toFailureText } from '../node/node-error.ts'
import { type MemoryLedger, Tensor } from '../tensor/tensor.ts'
import { type Blocker, type Slot, type Value, valueTypeName } from '../values/value.ts'
import type { CallOutputs, NodeCalls } from './calls/call-node.ts'
import { buffersOf, type CacheEntry, type ResultCache, type Signatures } from './results/result-cache.ts'
import type { LiveGraph, LiveNode, Schedule } from './schedule.ts'

// The output values that a run holds on to. A result stays as long as some node of the run may still read it, and its
// memory goes back with the last reader; what is worth keeping longer is kept by the cache.

interface RunResults {
  outputsOf(nodeId: string): readonly Slot[] | null
  /** Throws NodeError when the run holds too much. */
  hold(nodeId: string, outputs: readonly Slot[]): void
  /** Keeps values alive until the run ends: constants of nodes made by expansion. */
  keep(values: Slot): void
  addReader(producer: string, reader: string): void
  /** The reader is done with everything that it reads. */
  readBy(reader: string, producers: readonly string[]): void
  /** The run is over: from here on it holds nothing more, though calls of it may still be out. */
  releaseAll(): void
  isOver(): boolean
}

interface Held {
  readonly outputs: readonly Slot[]
  readonly buffers: ReadonlySet<SharedArrayBuffer>
  readonly plainBytes: number
}

interface RunResultsDeps {
  readonly ledger: Pick<MemoryLedger, 'retain' | 'release'>
  readonly values: RunValues
}

export function createRunResults({ ledger, values }: RunResultsDeps): RunResults {
  const held = new Map<string, Held>()
  const readers = new Map<string, Set<string>>()
  const kept: SharedArrayBuffer[] = []
  let isOver = false

  function release(nodeId: string): void {
    const result = held.get(nodeId)
    if (result === undefined) return
    held.delete(nodeId)
    for (const buffer of result.buffers) ledger.release(buffer)
    values.give(result.plainBytes)
  }

  return {
    outputsOf: (nodeId) => held.get(nodeId)?.outputs ?? null,
    isOver: () => isOver,
    hold(nodeId, outputs) {
      if (isOver || held.has(nodeId) || (readers.get(nodeId)?.size ?? 0) === 0) return
      const plainBytes = outputs.reduce((sum, slot) => sum + weighValues(slot), 0)
      values.take(plainBytes)
      const buffers = buffersOf(outputs)
      for (const buffer of buffers) ledger.retain(buffer)
      held.set(nodeId, { outputs, buffers, plainBytes })
    },
    keep(constants) {
      if (isOver) return
      for (const buffer of buffersOf([constants])) {
        ledger.retain(buffer)
        kept.push(buffer)
      }
    },
    addReader(producer, reader) {
      const known = readers.get(producer)
      if (known === undefined) readers.set(producer, new Set([reader]))
      else known.add(reader)
    },
    readBy(reader, producers) {
      for (const producer of producers) {
        const waiting = readers.get(producer)
        if (waiting?.delete(reader) && waiting.size === 0) release(producer)
      }
    },
    releaseAll() {
      isOver = true
      for (const nodeId of [...held.keys()]) release(nodeId)
      for (const buffer of kept.splice(0)) ledger.release(buffer)
      values.close()
    },
  }
}

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

// How the failure of a run is reported: what went wrong, in which node, with which inputs.

/** A failure together with the node it happened in. */
export class NodeFailure extends Error {
  readonly live: LiveNode
  constructor(live: LiveNode, cause: unknown) {
    super('a node failed', { cause })
    this.live = live
  }
}

export function toFailure(error: unknown, nodeId: string | null, classType: string | null): EngineFailure {
  const { exceptionType, message, traceback } = toFailureText(error)
  return { code: 'node_execution_error', message, nodeId, classType, traceback, exceptionType }
}

/** The client does not know the nodes that expansion made: the submitted node is named in their stead. */
export function blame({ graph, given, executed }: RunState, { live, cause }: NodeFailure): EngineFailure {
  return {
    ...toFailure(cause, live.realId, graph.get(live.realId).node.classType),
    currentInputs: showInputs(given.get(live.id)),
    currentOutputs: [...graph.ids()],
    executed: [...executed],
  }
}

type ShownInputs = Readonly<Record<string, readonly unknown[]>>

const MAX_TEXT_LENGTH = 1000
const MAX_VALUES = 100
const MAX_INPUTS = 100

/** What a node was given: plain values as they are, everything else described, nothing long. */
function showInputs(lists: ReadonlyMap<string, Slot> | undefined): ShownInputs {
  const shown = [...(lists ?? [])].slice(0, MAX_INPUTS)
  // Not by assignment: an input may be called `__proto__`.
  return Object.fromEntries(shown.map(([name, values]) => [name, values.slice(0, MAX_VALUES).map(showValue)]))
}

function showValue(value: Value): unknown {
  if (value === null || typeof value === 'boolean' || typeof value === 'number') return value
  if (typeof value === 'string') return value.slice(0, MAX_TEXT_LENGTH)
  if (value instanceof NumberText) return Number(value.text)
  if (typeof value === 'bigint') return String(value)
  if (value instanceof Tensor) return `tensor of [${value.shape.join(', ')}]`
  return `a value of type ${valueTypeName(value)}`
}

// Events of nodes that run at the same time, passed on one node after the other: those of the node that started first at once,
// those of the others when it is done. So every reader sees whole nodes in the order in which they were started.
// What waits is bounded: of a flood of progress and previews only the newest is kept.

// Engine events as the engine thread makes them: reports carry their bytes, or say where these lie, since a function cannot cross
// threads. Also what an event weighs while it is kept, and which ones may be left out when too much is kept.

/** Bytes in a file beside the message. */
interface BytesAside {
  /** Its name in the folder that the opener gave. */
  readonly file: number
  readonly at: number
  readonly byteLength: number
}

export type SentFile = Omit<MadeFile, 'bytes'> & { readonly bytes: MadeFile['bytes'] | BytesAside }
export type SentReport = Readonly<Record<string, readonly (SentFile | MadeValue)[]>>

export type RunEvent =
  | Exclude<EngineEvent, { type: 'node_report' }>
  | ({ readonly type: 'node_report'; readonly report: SentReport; readonly cached: boolean } & NodeRef)

const EVENT_WEIGHT = 256

/** The same on every thread that counts. */
export function weightOf(event: RunEvent): number {
  if (event.type === 'preview') return EVENT_WEIGHT + event.bytes.byteLength
  if (event.type === 'log' || event.type === 'node_text') return EVENT_WEIGHT + event.text.length
  if (event.type !== 'node_report') return EVENT_WEIGHT
  let weight = EVENT_WEIGHT
  for (const items of Object.values(event.report)) {
    for (const item of items) weight += item.kind === 'file' ? item.bytes.byteLength : weighJson(item.value)
  }
  return weight
}

/** Newer progress and previews make older ones of their node pointless. A preview that is a result is always kept. */
export function isReplacedBy(older: RunEvent | undefined, newer: RunEvent): boolean {
  if (older === undefined || older.type !== newer.type) return false
  if (newer.type !== 'node_progress' && newer.type !== 'preview') return false
  if (older.type === 'preview' && older.isResult === true) return false
  return (older as typeof newer).nodeId === newer.nodeId
}

/** An event that belongs to a node. */
type NodeEvent = { [Type in RunEvent['type']]: Extract<RunEvent, { type: Type } & NodeRef> }[RunEvent['type']]

export interface NodeVoice {
  send(event: NodeEvent): void
  /** The node has said all that it says in this turn: the next voice in line is heard. */
  close(): void
}

interface EventLine {
  open(): NodeVoice
  /** Tells everything that still waits: the run ends. */
  flush(): void
}

// How much a node may say while it waits to be heard before only its newest progress and previews are kept.
const MAX_WAITING_WEIGHT = 1_048_576

interface Speaker {
  waiting: NodeEvent[]
  weight: number
  isClosed: boolean
}

export function createEventLine(emit: (event: RunEvent) => void): EventLine {
  const speakers: Speaker[] = []

  function tell(speaker: Speaker): void {
    for (const event of speaker.waiting) emit(event)
    speaker.waiting = []
    speaker.weight = 0
  }

  function advance(): void {
    while (speakers.length > 0) {
      tell(speakers[0])
      if (!speakers[0].isClosed) return
      speakers.shift()
    }
  }

  function keepNewest(speaker: Speaker, event: NodeEvent): void {
    speaker.waiting = speaker.waiting.filter((older) => !isReplacedBy(older, event))
    speaker.weight = speaker.waiting.reduce((sum, kept) => sum + weightOf(kept), 0)
  }

  return {
    open() {
      const speaker: Speaker = { waiting: [], weight: 0, isClosed: false }
      speakers.push(speaker)
      return {
        send(event) {
          if (speaker === speakers[0]) {
            emit(event)
            return
          }
          if (speaker.weight > MAX_WAITING_WEIGHT) keepNewest(speaker, event)
          speaker.weight += weightOf(event)
          speaker.waiting.push(event)
        },
        close() {
          speaker.isClosed = true
          advance()
        },
      }
    },
    flush() {
      for (const speaker of speakers) tell(speaker)
    },
  }
}
