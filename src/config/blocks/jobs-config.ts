/** How many jobs run and wait, and how long each of them may take. */
import type { SettingValues } from '../settings/settings.ts'
import { autoWorkers } from './fleet-config.ts'

export type JobsConfig = ReturnType<typeof toJobsConfig>

export function toJobsConfig(values: SettingValues) {
  return {
    /** Jobs that run at once. */
    workers: values.workers === 'auto' ? autoWorkers(values) : values.workers,
    maxQueued: values.maxQueue,
    retentionMs: values.retention,
    /** Long enough for a client that polls once in a while to see how its job ended. */
    expiredGraceMs: 3_600_000,
    /** null: no limit. */
    maxRunMs: values.maxRunTime,
    /** A node that heeds the cancel stops within a second; supervisors of deploy/ wait this long before they kill. */
    cancelGraceMs: 10_000,
    drainTimeoutMs: values.drainTimeout,
    /** How long requests are still taken by a process that says it is not ready any more. */
    drainDelayMs: values.drainDelay,
    /** The pools whose jobs this process runs; null: all. */
    pools: values.pools,
    previewOutputs: values.previewOutputs,
    /** Of jobs that do not say themselves whether earlier results may answer them. */
    reuse: values.reuse,
  }
}
