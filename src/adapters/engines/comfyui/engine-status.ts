/** What is known of one ComfyUI server, from memory: nothing here asks it anything. */

/**
 * `starting`: not yet known, or being (re)started; `ready`: answers and its node classes are known; `unreachable`: does not
 * answer; `faulted`: answers, but must not be used before it was restarted (CUDA fault, ignored interrupt); `closed`: ours no more.
 */
export type ComfyEngineState = 'starting' | 'ready' | 'unreachable' | 'faulted' | 'closed'

export interface ComfyEngineStatus {
  readonly name: string
  /** Without credentials. */
  readonly url: string
  readonly state: ComfyEngineState
  /** Since when. */
  readonly stateAt: Date
  readonly kind: 'remote' | 'supervised'
  readonly version: string | null
  /** Runs of ours. */
  readonly activeRuns: number
  /** As the server last told: everybody's. */
  readonly queueRemaining: number | null
  readonly socket: 'open' | 'connecting' | 'closed'
  readonly nodeClasses: number
  readonly weights: number
  readonly catalogAt: Date | null
  readonly device: ComfyDevice | null
  readonly lastError: { readonly code: string; readonly message: string; readonly at: Date } | null
  /** Of supervised engines: how often it was started anew, and what its processes occupy. */
  readonly restarts: number
  readonly rssBytes: number | null
  readonly jobsSinceStart: number
}

export interface ComfyDevice {
  readonly name: string
  readonly vramTotalBytes: number | null
  readonly vramFreeBytes: number | null
}
