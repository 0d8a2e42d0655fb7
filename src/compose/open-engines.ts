/** The engines that the configuration names, as one fleet. */
import { openEmbeddedEngine } from '../adapters/engines/embedded/engine.ts'
import type { Config, EngineConfig } from '../config/config.ts'
import type { Engine } from '../domain/engine/engine.ts'
import { createFleet, type Fleet } from '../domain/engine/fleet.ts'
import { toResidentEngine } from '../domain/engine/resident-engine.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Store } from './open-store.ts'

export interface FleetParts {
  readonly clock: Clock
  readonly log: Log
  readonly store: Pick<Store, 'readMeta' | 'writeMeta'>
  readonly overrides: { readonly engine?: Engine }
}

export interface OpenedFleet {
  readonly fleet: Fleet
  /** The engine in this process, if there is one. */
  readonly resident: Engine | null
}

export async function openFleet(config: Config, { clock, log, overrides }: FleetParts): Promise<OpenedFleet> {
  const engine = overrides.engine ?? (await openEmbedded(config.engine, { clock, log }))
  const resident = toResidentEngine(engine, { id: 'embedded', concurrency: Math.max(1, config.jobs.workers) })
  return { fleet: createFleet([resident], { clock, log, hasLanes: false }), resident: engine }
}

function openEmbedded(config: EngineConfig, { clock, log }: { clock: Clock; log: Log }): Promise<Engine> {
  return openEmbeddedEngine({
    threads: config.threads,
    memoryLimitBytes: config.memoryBytes,
    maxImagePixels: config.maxImagePixels,
    customNodes: { folders: config.nodeFolders, timeoutMs: config.nodeTimeoutMs },
    clock,
    log,
  })
}
