/** The engine that the configuration names. */
import { openEmbeddedEngine } from '../adapters/engines/embedded/engine.ts'
import type { EngineConfig } from '../config/config.ts'
import type { Engine } from '../domain/engine/engine.ts'
import type { RunModel } from '../domain/engine/run-model.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

export interface EngineParts {
  readonly clock: Clock
  readonly log: Log
  /** Runs a partner's model for a node. */
  readonly runModel: RunModel
}

export function openEngine(config: EngineConfig, { clock, log, runModel }: EngineParts): Promise<Engine> {
  return openEmbeddedEngine({
    threads: config.threads,
    memoryLimitBytes: config.memoryBytes,
    maxImagePixels: config.maxImagePixels,
    customNodes: { folders: config.nodeFolders, timeoutMs: config.nodeTimeoutMs },
    runModel,
    clock,
    log,
  })
}
