/** What an operator can see and ask of the engines of the pool. Only a running service has them. */
import type { EngineStatus } from '../../../domain/engine/engine-status.ts'
import type { Fleet } from '../../../domain/engine/fleet.ts'
import type { AdminOperation } from '../admin-operation.ts'
import { cordonEngine } from './cordon-engine.ts'
import { drainEngine } from './drain-engine.ts'
import { getEngine } from './get-engine.ts'
import { getEngineCatalog } from './get-engine-catalog.ts'
import { listEngines } from './list-engines.ts'
import { resumeEngine } from './resume-engine.ts'

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
