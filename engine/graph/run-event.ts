import type { GraphRefusal } from './validate/validation-result.ts'

/**
 * The events of a run, the same for every engine. A run yields `started` first and exactly one of `succeeded`, `failed` and
 * `interrupted` last; a failure is an event, not an exception. A run that the engine refuses never starts: it yields only a
 * failure with a `refusal`. An iterator that throws means that the engine itself is gone: the attempt is lost, not the job.
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
  /** As the engine reports it; null when it does not. */
  readonly contentType: string | null
  /** Set when the bytes are held by this process until they are read: in its memory, or large ones in a file without a name. */
  readonly heldBytes?: number
  /** May be called again, until the file is released: whoever keeps the bytes may have to begin anew. */
  read(): AsyncIterable<Uint8Array>
  /** The bytes are kept, or not wanted: the engine may remove them. Absent where nothing is removed. */
  release?(): void
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
  /** A stable code, such as `node_execution_error`. */
  readonly code: string
  readonly message: string
  readonly nodeId: string | null
  readonly classType: string | null
  readonly traceback: string | null
  /** The engine's own exception name, such as `ValueError`. */
  readonly exceptionType: string
  /** What the failing node was given, as text or plain values, by input. Never a hidden input: those may be credentials. */
  readonly currentInputs?: Readonly<Record<string, readonly unknown[]>>
  /** Nodes whose results the engine has in its cache. */
  readonly currentOutputs?: readonly string[]
  /** Nodes that this run had finished before the failure. */
  readonly executed?: readonly string[]
  /** The engine refused the graph, so nothing of it ran: what it found, with names as they stand in the submitted graph. */
  readonly refusal?: GraphRefusal
}

interface RunTime {
  /** How long the engine computed the run, by its own clock; left out: it does not say. */
  readonly computedMs?: number
}

/** The last one of a run. */
export type OutcomeEvent =
  | ({ readonly type: 'succeeded' } & RunTime)
  | ({ readonly type: 'failed'; readonly failure: EngineFailure } & RunTime)
  | ({ readonly type: 'interrupted' } & RunTime)

export type EngineEvent =
  /** nodesTotal: nodes reachable from the outputs, cached ones included. */
  | { readonly type: 'started'; readonly nodesTotal: number }
  | { readonly type: 'cached'; readonly nodeIds: readonly string[] }
  | ({ readonly type: 'node_started' } & NodeRef)
  /** isOwn: a step that the engine adds for progress bars, beyond those that the node reports in ComfyUI. */
  | ({
      readonly type: 'node_progress'
      readonly value: number
      readonly max: number
      readonly isOwn?: boolean
    } & NodeRef)
  | ({ readonly type: 'node_finished' } & NodeRef)
  /**
   * Belongs to the preceding progress of its node. isResult: the picture is the result of the node, not a preview, and the only
   * copy, so readers that keep up must get it.
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
  | OutcomeEvent
