/**
 * One ComfyUI server as an Engine. It opens whether or not the server is there: readiness is a state, told by `status` and
 * `onStateChange`. Runs are only decided by what `/history` and `/queue` say; the socket brings progress and previews.
 */
import type { Engine } from '../../../domain/engine/engine.ts'
import type { ComfyEngineStatus } from './engine-status.ts'

export interface ComfyEngine extends Engine {
  readonly name: string
  /** Supervised engines can be restarted by us. */
  readonly canRecycle: boolean
  status(): ComfyEngineStatus
  /** Called after every change of state. Returns how to stop listening. */
  onStateChange(listener: (status: ComfyEngineStatus) => void): () => void
  /** Resolves when the engine is ready (or closed), or the signal is aborted. */
  untilReady(signal?: AbortSignal): Promise<void>
  /** Names of installed weights: everything that a loader offers. */
  weights(): ReadonlySet<string>
  /** Reads the node classes again, unless that has just been done. */
  refresh(): Promise<void>
  /** Nothing is to run here until the server was restarted. */
  markFaulted(code: string, message: string): void
  /** Ends the server's processes and starts it anew; of a server that is not ours it only says that it is unfit. */
  recycle(reason: string): Promise<void>
}
