import type { Graph } from '../../../engine/graph/graph.ts'
import type { NodeCatalog } from '../../../engine/graph/node-catalog.ts'
import type { EngineEvent } from '../../../engine/graph/run-event.ts'

/** A file that the graph names, resolved when the job was submitted. */
export interface EngineInput {
  readonly hash: string
  readonly sizeBytes: number
  readonly contentType: string
  /** Set when the bytes lie in a file of this machine. */
  readonly localPath: string | null
  /** Fetches the bytes into a file of this machine, which stays until it is given back; left out where all of them lie in local files. */
  borrow?(signal: AbortSignal): Promise<{ readonly path: string } & AsyncDisposable>
  read(): AsyncIterable<Uint8Array>
}

export interface EngineRun {
  readonly jobId: string
  readonly accountId: string
  readonly attempt: number
  /** Of this claim alone: a database that crashed may have forgotten one, and then the job is handed out again as the same attempt. */
  readonly claimId: string
  readonly graph: Graph
  /** The same as text, where it is at hand. */
  readonly graphText?: string
  /** By the name that stands in the graph. */
  readonly inputs: ReadonlyMap<string, EngineInput>
  /** Credentials and PNG info of the submit. Never stored, never logged. */
  readonly extraData: Readonly<Record<string, unknown>> | null
  /**
   * Reserves `count` consecutive numbers for output files of one name prefix in this account and returns the first.
   * Two jobs never get the same number.
   */
  reserveOutputNumbers(folder: string, prefix: string, count: number): Promise<number>
  /**
   * The engine may have this run already, from a process before this one: it is looked for there and followed to its end, and begun
   * nowhere. Left out: it begins.
   */
  readonly isAdopted?: true
  /** It came with credentials that nobody knows any more, so whatever is printed may hold them. */
  readonly areCredentialsLost?: true
  /** Of an adopted run that had ended before anybody looked: how long it took. */
  readonly onEndedBefore?: (tookMs: number) => void
  /** Settles when nothing that the engine still keeps of the run is needed any more; false: somebody else needs it. Left out: at its end. */
  readonly settled?: Promise<boolean>
  /** Whether another engine could run it now; left out: it could. */
  readonly hasOther?: () => boolean
  /**
   * Called when the engine has computed everything and the run will succeed; what follows is only read from it, so the next run may
   * have its place. An engine that never calls it has its place taken until the run is over.
   */
  readonly onComputed?: () => void
}

export interface RunOptions {
  /** Aborted to interrupt the run: the engine answers with `interrupted` (or whatever it reached first). */
  readonly signal: AbortSignal
  /** Aborted to leave the run to whoever adopts it: the events end, and nothing on the engine is stopped or removed. */
  readonly leave?: AbortSignal
}

export interface Engine extends AsyncDisposable {
  /** What this engine can run; cheap, from memory. */
  catalog(): NodeCatalog
  run(run: EngineRun, options: RunOptions): AsyncIterable<EngineEvent>
  /** What its process occupies; left out by engines that have none of their own. */
  memoryBytes?(): number
}
