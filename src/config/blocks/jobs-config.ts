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

/** How deployments are reached, and who is told when their pools should grow or shrink. */
export type DeploymentsConfig = ReturnType<typeof toDeploymentsConfig>

export function toDeploymentsConfig(values: SettingValues) {
  return {
    /** null: deployments are reached by prefix only. */
    domain: values.deploymentsDomain,
    hook: values.poolHook,
    /** For deployments that do not say it themselves. */
    idleAfterMs: 300_000,
  }
}

/** Who may have environments built, and how much of them. */
export type BuildsConfig = ReturnType<typeof toBuildsConfig>

const GIB = 1024 ** 3

// Beyond what a person keeps track of, and little enough for one disk.
const BOUNDS = {
  builds: 500,
  releases: 200,
  unfinished: 20,
  blobs: { maxFileBytes: 100 * GIB, maxFiles: 2000, maxBytes: 1024 * GIB },
} as const

export function toBuildsConfig({ builds }: Pick<SettingValues, 'builds'>) {
  return { allowed: builds, bounds: BOUNDS }
}
