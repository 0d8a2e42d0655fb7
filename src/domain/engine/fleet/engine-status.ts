/** What an operator sees of one engine. Of several states that apply, the first of this list is shown. */
import type { EngineTrouble } from './fleet-engine.ts'
import type { ObservedRelease } from './observed-release.ts'

/** `standby`: another process drives it, or may. */
export const ENGINE_STATES = ['standby', 'quarantined', 'lost', 'starting', 'draining', 'cordoned', 'ready'] as const
export type EngineState = (typeof ENGINE_STATES)[number]

export interface EngineCounts {
  /** Runs that it was given, and how they ended. */
  readonly jobs: number
  readonly failures: number
  /** Runs that broke off because it was gone. */
  readonly losses: number
  /** Runs that needed weights which were not loaded. */
  readonly switches: number
  readonly recycles: number
}

export interface EngineStatus {
  readonly id: string
  readonly state: EngineState
  /** Why it is quarantined, draining or being recycled; null when there is nothing to say. */
  readonly reason: string | null
  readonly isSupervised: boolean
  readonly concurrency: number
  readonly running: number
  readonly nodeClasses: number
  readonly weights: number
  readonly loadedWeights: readonly string[]
  readonly version: string | null
  /** null: it was made from a release of ours, is a part of this service, or has not said enough. */
  readonly observed: ObservedRelease | null
  readonly reconnects: number
  readonly memoryBytes: number | null
  readonly startedAt: Date | null
  readonly lastError: EngineTrouble | null
  readonly counts: EngineCounts
}
