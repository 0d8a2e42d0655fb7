/** A test over several engines behind one queue. */
import { test } from 'node:test'
import type { JsonObject } from '../../../lib/json/lossless-json.ts'
import {
  createFakeFleetEngine,
  type FakeFleetEngine,
  type FakeFleetEngineOptions,
} from '../../support/engines/fake-fleet-engine.ts'
import { node, openRig, type Rig, type RigOptions, SAVE } from './job-rig.ts'

interface FleetRig {
  readonly rig: Rig
  readonly engines: readonly FakeFleetEngine[]
}

export function fleetTest(
  name: string,
  engines: readonly FakeFleetEngineOptions[],
  body: (fleet: FleetRig) => Promise<void>,
  options: RigOptions = {},
): void {
  test(name, async () => {
    const made = engines.map(createFakeFleetEngine)
    const rig = await openRig({ engines: made, ...options })
    try {
      await body({ rig, engines: made })
    } finally {
      await rig.close()
    }
  })
}

export const TWO = [{ id: 'one' }, { id: 'two' }]

export function withWeights(name: string, graph: JsonObject = SAVE): JsonObject {
  return { ...graph, '100': node('FakeCheckpoint', { ckpt_name: name }) }
}

export function stateOf(rig: Rig, id: string) {
  return rig.fleet.status().find((engine) => engine.id === id)?.state
}

/** Which engine runs the only job, and which does not. */
export async function findBusy(
  engines: readonly FakeFleetEngine[],
): Promise<[busy: FakeFleetEngine, idle: FakeFleetEngine]> {
  await Promise.race(engines.map(({ fake }) => fake.untilRuns(1)))
  const [one, two] = engines
  return one.fake.runs.length > 0 ? [one, two] : [two, one]
}
