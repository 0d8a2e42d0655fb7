/** The operations on engines, as one piece that the composition root hands to the admin API. */
import type { FastifyInstance } from 'fastify'
import type { EngineStatus } from '../../domain/engine/engine-status.ts'
import type { Fleet } from '../../domain/engine/fleet.ts'
import { cordonEngine } from './operations/cordon-engine.ts'
import { drainEngine } from './operations/drain-engine.ts'
import { getEngine } from './operations/get-engine.ts'
import { getEngineCatalog } from './operations/get-engine-catalog.ts'
import { listEngines } from './operations/list-engines.ts'
import { resumeEngine } from './operations/resume-engine.ts'

export interface EngineOperationsDeps {
  readonly fleet: Pick<Fleet, 'status' | 'find' | 'availability' | 'cordon' | 'resume'>
  /** Answers at once; the emptying goes on by itself. */
  readonly drain: (engineId: string) => EngineStatus
}

const OPERATIONS = [listEngines, getEngineCatalog, getEngine, cordonEngine, drainEngine, resumeEngine]

export function engineOperations(app: FastifyInstance, deps: EngineOperationsDeps): void {
  for (const register of OPERATIONS) register(app, deps)
}
