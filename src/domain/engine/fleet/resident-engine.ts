/** The built-in engine, which belongs to this process, as a member of a fleet: always ready, never restarted. */
import type { ObjectInfo } from '../../../../engine/graph/object-info.ts'
import type { Engine } from '../engine-port.ts'
import type { EngineHealth, FleetEngine } from './fleet-engine.ts'

const HEALTH: EngineHealth = {
  state: 'ready',
  incarnation: 1,
  lastError: null,
  unfit: null,
  version: null,
  reconnects: 0,
  memoryBytes: null,
  startedAt: null,
}

interface ResidentOptions {
  readonly id: string
  readonly concurrency: number
  /** Its maker closes it, and the fleet does not. */
  readonly isBorrowed?: boolean
}

export function toResidentEngine(
  engine: Engine,
  { id, concurrency, isBorrowed = false }: ResidentOptions,
): FleetEngine {
  const catalog = engine.catalog()
  const info = Object.fromEntries(catalog.classTypes().map((classType) => [classType, catalog.find(classType)!]))
  return {
    id,
    concurrency,
    isResident: true,
    catalog: () => engine.catalog(),
    run: (run, options) => engine.run(run, options),
    health: () => ({ ...HEALTH, memoryBytes: engine.memoryBytes?.() ?? null }),
    onChange: () => () => {},
    objectInfo: () => info as ObjectInfo,
    async [Symbol.asyncDispose]() {
      if (!isBorrowed) await engine[Symbol.asyncDispose]()
    },
  }
}
