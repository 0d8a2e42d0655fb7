/** How many jobs run and wait, and how long each of them may take. */
import type { SettingValues } from '../settings/settings.ts'
import { autoWorkers } from './fleet-config.ts'

export interface JobsConfig {
  /** Jobs that run at once. */
  readonly workers: number
  readonly maxQueued: number
  readonly retentionMs: number
  readonly expiredGraceMs: number
  /** null: no limit. */
  readonly maxRunMs: number | null
  readonly cancelGraceMs: number
  readonly drainTimeoutMs: number
  /** How long requests are still taken by a process that says it is not ready any more. */
  readonly drainDelayMs: number
  /** The pools whose jobs this process runs; null: all. */
  readonly pools: readonly string[] | null
  readonly previewOutputs: boolean
  /** Of jobs that do not say themselves whether earlier results may answer them. */
  readonly reuse: 'none' | 'exact'
}

// Long enough for a client that polls once in a while to see how its job ended.
const EXPIRED_GRACE_MS = 3_600_000
// A node that heeds the cancel stops within a second; supervisors of deploy/ wait this long before they kill.
const CANCEL_GRACE_MS = 10_000

export function toJobsConfig(values: SettingValues): JobsConfig {
  return {
    workers: values.workers === 'auto' ? autoWorkers(values) : values.workers,
    maxQueued: values.maxQueue,
    retentionMs: values.retention,
    expiredGraceMs: EXPIRED_GRACE_MS,
    maxRunMs: values.maxRunTime,
    cancelGraceMs: CANCEL_GRACE_MS,
    drainTimeoutMs: values.drainTimeout,
    drainDelayMs: values.drainDelay,
    pools: values.pools,
    previewOutputs: values.previewOutputs,
    reuse: values.reuse,
  }
}
