/**
 * One ComfyUI server as an engine of a fleet. It opens whether or not the server is there: readiness is a state. Runs are
 * only decided by what `/history` and `/queue` say; the socket brings progress, previews and printed lines.
 */
import type { FleetEngine } from '../../../domain/engine/fleet-engine.ts'

export interface ComfyDetails {
  /** Without credentials. */
  readonly url: string
  readonly kind: 'remote' | 'supervised'
  /** Runs of ours. */
  readonly activeRuns: number
  /** As the server last told: everybody's. */
  readonly queueRemaining: number | null
  readonly socket: 'open' | 'connecting' | 'closed'
  readonly nodeClasses: number
  readonly weights: number
  readonly catalogAt: Date | null
  readonly device: ComfyDevice | null
  /** How often we started its process anew. */
  readonly restarts: number
  readonly jobsSinceStart: number
}

export interface ComfyDevice {
  readonly name: string
  readonly vramTotalBytes: number | null
  readonly vramFreeBytes: number | null
}

export interface ComfyEngine extends FleetEngine {
  details(): ComfyDetails
  /** Resolves when the engine is ready or closed, or the signal is aborted. */
  untilReady(signal?: AbortSignal): Promise<void>
  /** Names of installed weights: everything that a loader offers. */
  weights(): ReadonlySet<string>
  /** Reads the node classes again, unless that has just been done. */
  refresh(): Promise<void>
}
