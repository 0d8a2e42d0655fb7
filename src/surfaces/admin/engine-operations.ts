/** What an operator can see and ask of the engines of the pool. Only a running service has them. */
import type { EngineStatus } from '../../domain/engine/fleet/engine-status.ts'
import type { Fleet } from '../../domain/engine/fleet/fleet.ts'
import type { AdminOperation } from './operation.ts'
import { cordonEngine } from './operations/cordon-engine.ts'
import { drainEngine } from './operations/drain-engine.ts'
import { getEngine } from './operations/get-engine.ts'
import { getEngineCatalog } from './operations/get-engine-catalog.ts'
import { listEngines } from './operations/list-engines.ts'
import { resumeEngine } from './operations/resume-engine.ts'

export interface EngineParts {
  readonly fleet: Pick<Fleet, 'status' | 'find' | 'availability' | 'cordon' | 'resume'>
  readonly drain: (engineId: string) => EngineStatus
}

export function createEngineOperations({ fleet, drain }: EngineParts): AdminOperation {
  return (app, kit) => {
    listEngines(app, { fleet })
    getEngineCatalog(app, { fleet })
    getEngine(app, { fleet })
    cordonEngine(app, { kit, cordon: (engineId) => fleet.cordon(engineId) })
    drainEngine(app, { kit, drain })
    resumeEngine(app, { kit, resume: (engineId) => fleet.resume(engineId) })
  }
}
