/** The configuration of the fleet: ComfyUI servers, their bounds, and whether the built-in engine takes part. */
import { availableParallelism } from 'node:os'
import type { SettingValues } from '../settings/settings.ts'

/** ComfyUI servers, and how they are supervised. */
export interface FleetConfig {
  /** Base addresses, each once. */
  readonly urls: readonly string[]
  /** The command of each server that is to be started. */
  readonly launches: readonly string[]
  readonly concurrency: number
  /** Whether the built-in engine takes jobs, too. */
  readonly hasEmbedded: boolean
  /** Whether workers of other machines may join. */
  readonly joins: 'auto' | 'on' | 'off'
  readonly maxOvertakes: number
  readonly waitMs: number
  readonly lostAfterMs: number
  /** null: never. */
  readonly stallAfterMs: number | null
  readonly idleAfterMs: number
  /** null: never. */
  readonly queueAfterMs: number | null
  readonly weights: {
    readonly allowsPickles: boolean
    /** null: no limit. */
    readonly quotaBytes: number | null
  }
  readonly recycle: {
    readonly maxJobs: number | null
    readonly maxMemoryBytes: number | null
    readonly maxAgeMs: number | null
  }
}

/** As many as the engines take together. */
export function autoWorkers(values: SettingValues): number {
  const { urls, launches, concurrency, hasEmbedded } = toFleetConfig(values)
  const embedded = hasEmbedded ? Math.max(2, availableParallelism()) : 0
  return (urls.length + launches.length) * concurrency + embedded
}

function hasEmbedded({ role, embedded, comfyui, comfyuiLaunch }: SettingValues): boolean {
  if (role === 'api') return false
  return embedded === 'on' || (embedded === 'auto' && comfyui.length + comfyuiLaunch.length === 0)
}

export function toFleetConfig(values: SettingValues): FleetConfig {
  const { comfyui: urls, comfyuiLaunch, comfyuiCount } = values
  const launches = comfyuiLaunch.flatMap((command) =>
    Array.from({ length: comfyuiCount }, (_, index) => command.replaceAll('{index}', String(index))),
  )
  return {
    urls,
    launches,
    concurrency: values.comfyuiConcurrency,
    hasEmbedded: hasEmbedded(values),
    joins: values.joins,
    maxOvertakes: values.maxOvertakes,
    waitMs: values.engineWait,
    lostAfterMs: values.engineLostAfter,
    stallAfterMs: values.engineStallAfter,
    idleAfterMs: values.engineIdleAfter,
    queueAfterMs: values.engineQueueAfter,
    weights: { allowsPickles: values.weightPickles === 'on', quotaBytes: values.weightQuota },
    recycle: { maxJobs: values.recycleJobs, maxMemoryBytes: values.recycleMemory, maxAgeMs: values.recycleAge },
  }
}
