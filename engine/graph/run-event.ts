import type { GraphRefusal } from './validate/validation-result.ts'

/**
 * The one vocabulary in which engines speak upward. A run yields `started` first and exactly one of `succeeded`, `failed`
 * and `interrupted` last; a failure is an event, not an exception. A run that the engine refuses never starts: all it yields is
 * a failure with a `refusal`. An iterator that throws means that the engine itself is
 * gone: the attempt is lost, not the job.
 */
export interface NodeRef {
  readonly nodeId: string
  readonly classType: string
  /** The node of the submitted graph that stands for it; differs from nodeId for nodes made by expansion. */
  readonly displayNodeId: string
  readonly parentNodeId: string | null
}

/** A file that a node reported. The bytes are read once, by whoever commits the output. */
export interface ReportedFile {
  readonly kind: 'file'
  readonly filename: string
  readonly subfolder: string
  readonly folder: 'output' | 'temp' | 'input'
  /** From the engine when it says so, else null. */
  readonly contentType: string | null
  /** Set when the bytes lie in our own memory until they are read. */
  readonly heldBytes?: number
  read(): AsyncIterable<Uint8Array>
}

/** A string, number or JSON value that a node reported. */
export interface ReportedValue {
  readonly kind: 'value'
  readonly value: unknown
}

export type ReportedItem = ReportedFile | ReportedValue

/** A node's UI output: items by key (`images`, `text`, `audio` ...), in order. */
export type NodeReport = Readonly<Record<string, readonly ReportedItem[]>>

export interface EngineFailure {
  /** A stable word for `job.error.code`, such as `node_execution_error`. */
  readonly code: string
  readonly message: string
  readonly nodeId: string | null
  readonly classType: string | null
  readonly traceback: string | null
  /** The engine's own exception name, such as `ValueError`. */
  readonly exceptionType: string
  /** What the failing node was given, as text or plain values, by input. Never a hidden input: those may be credentials. */
  readonly currentInputs?: Readonly<Record<string, readonly unknown[]>>
  /** Nodes that the engine holds results of. */
  readonly currentOutputs?: readonly string[]
  /** Nodes that this run itself finished before. */
  readonly executed?: readonly string[]
  /** The engine refused the graph, so nothing of it ran: what it found, with names as they stand in the submitted graph. */
  readonly refusal?: GraphRefusal
}

export type EngineEvent =
  /** nodesTotal: nodes reachable from the outputs, cached ones included. */
  | { readonly type: 'started'; readonly nodesTotal: number }
  | { readonly type: 'cached'; readonly nodeIds: readonly string[] }
  | ({ readonly type: 'node_started' } & NodeRef)
  /** isOwn: a step of our own making, worth a progress bar but not among those that the node is known to report. */
  | ({
      readonly type: 'node_progress'
      readonly value: number
      readonly max: number
      readonly isOwn?: boolean
    } & NodeRef)
  | ({ readonly type: 'node_finished' } & NodeRef)
  /**
   * Belongs to the progress of its node that it follows. isResult: not a glimpse but what the node delivers, and no other
   * copy exists; it must reach everybody who keeps up.
   */
  | ({
      readonly type: 'preview'
      readonly contentType: string
      readonly bytes: Uint8Array
      readonly isResult?: boolean
    } & NodeRef)
  | ({ readonly type: 'node_text'; readonly text: string } & NodeRef)
  | ({ readonly type: 'node_report'; readonly report: NodeReport; readonly cached: boolean } & NodeRef)
  /** A blocker with a message stopped a branch; the run goes on. */
  | ({ readonly type: 'node_blocked'; readonly message: string } & NodeRef)
  | { readonly type: 'log'; readonly text: string }
  | { readonly type: 'succeeded' }
  | { readonly type: 'failed'; readonly failure: EngineFailure }
  | { readonly type: 'interrupted' }
