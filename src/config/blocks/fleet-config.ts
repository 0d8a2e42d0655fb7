/** The configuration of the fleet: ComfyUI servers, their bounds, and whether the built-in engine takes part. */
import { availableParallelism } from 'node:os'
import type { Recycling } from '../readers/read-quantity.ts'
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
  readonly weights: { readonly allowsPickles: boolean }
  readonly recycle: {
    readonly maxJobs: number | null
    readonly maxMemoryBytes: number | null
    readonly maxAgeMs: number | null
  }
}

// Loading weights takes as long as some ten short jobs. With this bound a job without loaded weights waits for minutes, not hours.
const MAX_OVERTAKES = 64
// Three polls in a row without an answer, and time for a restart of the network in between.
const LOST_AFTER_MS = 15_000
// A server that is well begins the next prompt within milliseconds of the last one's end.
const IDLE_AFTER_MS = 30_000
// Somebody else's prompt may be long; waiting for it is better than computing the job twice.
const QUEUE_AFTER_MS = 600_000

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
  const { jobs, memoryBytes, ageMs }: Recycling = values.recycleAfter
  const launches = comfyuiLaunch.flatMap((command) =>
    Array.from({ length: comfyuiCount }, (_, index) => command.replaceAll('{index}', String(index))),
  )
  return {
    urls,
    launches,
    concurrency: values.comfyuiConcurrency,
    hasEmbedded: hasEmbedded(values),
    joins: values.joins,
    maxOvertakes: MAX_OVERTAKES,
    waitMs: values.engineWait,
    lostAfterMs: LOST_AFTER_MS,
    stallAfterMs: values.engineStallAfter,
    idleAfterMs: IDLE_AFTER_MS,
    queueAfterMs: QUEUE_AFTER_MS,
    weights: { allowsPickles: values.weightPickles === 'on' },
    recycle: { maxJobs: jobs ?? null, maxMemoryBytes: memoryBytes ?? null, maxAgeMs: ageMs ?? null },
  }
}
