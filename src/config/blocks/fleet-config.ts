/** The configuration of the fleet: ComfyUI servers, their bounds, and whether the built-in engine takes part. */
import { availableParallelism, totalmem } from 'node:os'
import type { Recycling } from '../readers/read-quantity.ts'
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'

export type FleetConfig = ReturnType<typeof toFleetConfig>

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

export function toFleetConfig(values: SettingValues) {
  const { comfyuiLaunch, comfyuiCount } = values
  const { jobs, memoryBytes, ageMs }: Recycling = values.recycleAfter
  return {
    /** Base addresses, each once. */
    urls: values.comfyui,
    /** The command of each server that is to be started. */
    launches: comfyuiLaunch.flatMap((command) =>
      Array.from({ length: comfyuiCount }, (_, index) => command.replaceAll('{index}', String(index))),
    ),
    concurrency: values.comfyuiConcurrency,
    /** Whether the built-in engine takes jobs, too. */
    hasEmbedded: hasEmbedded(values),
    /** Whether workers of other machines may join. */
    joins: values.joins,
    waitMs: values.engineWait,
    /** Three polls in a row without an answer, and time for a restart of the network in between. */
    lostAfterMs: 15_000,
    /** null: never. */
    stallAfterMs: values.engineStallAfter,
    /** A server that is well begins the next prompt within milliseconds of the last one's end. */
    idleAfterMs: 30_000,
    /** Somebody else's prompt may be long; waiting for it is better than computing the job twice. */
    queueAfterMs: 600_000,
    /** Engines of releases: how many may be up at a time on this machine; those above a deployment's minimum end soon, and `min` keeps others. */
    copies: { room: values.releaseEngines, idleMs: 30_000 },
    weights: { allowsPickles: values.weightPickles === 'on' },
    recycle: { maxJobs: jobs ?? null, maxMemoryBytes: memoryBytes ?? null, maxAgeMs: ageMs ?? null },
  }
}

/** The built-in engine: its threads, its memory, and the nodes that users wrote for it. */
export type EngineConfig = ReturnType<typeof toEngineConfig>

export function toEngineConfig(values: SettingValues, toAbsolute: ToAbsolute) {
  const { engineThreads: threads, engineMemory: memory } = values
  return {
    threads: threads === 'auto' ? Math.max(1, availableParallelism() - 1) : threads,
    memoryBytes: memory === 'auto' ? Math.min(Math.floor(totalmem() / 2), 8 * 2 ** 30) : memory,
    /** 16384 × 16384, the largest picture that ComfyUI's own nodes make. Larger ones are refused before they are decoded. */
    maxImagePixels: 16_384 ** 2,
    /** Absolute. */
    nodeFolders: values.nodes.map((folder) => toAbsolute('nodes', folder)),
    nodeTimeoutMs: values.nodeTimeout,
  }
}
