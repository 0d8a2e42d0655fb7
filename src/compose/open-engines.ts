/** The engine that the configuration names. */
import { openEmbeddedEngine } from '../adapters/engines/embedded/engine.ts'
import type { EngineConfig } from '../config/config.ts'
import type { Engine } from '../domain/engine/engine.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

export function openEngine(config: EngineConfig, { clock, log }: { clock: Clock; log: Log }): Promise<Engine> {
  return openEmbeddedEngine({
    threads: config.threads,
    memoryLimitBytes: config.memoryBytes,
    maxImagePixels: config.maxImagePixels,
    customNodes: { folders: config.nodeFolders, timeoutMs: config.nodeTimeoutMs },
    clock,
    log,
  })
}
