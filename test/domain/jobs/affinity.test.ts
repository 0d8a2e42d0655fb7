/** Engines keep to the weights they have loaded, as far as nobody has to wait too long for that. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFakeFleetEngine } from '../../support/engines/fake-fleet-engine.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { node, openRig } from './job-rig.ts'

const CHECKPOINTS = ['a.safetensors', 'b.safetensors', 'c.safetensors', 'd.safetensors']
const JOBS = 240
const MAX_OVERTAKES = 64

interface Tally {
  readonly switches: number
  /** By how many later jobs each job was overtaken. */
  readonly overtakes: readonly number[]
}

async function runMix(maxOvertakes: number): Promise<Tally> {
  const engines = ['one', 'two'].map((id) => createFakeFleetEngine({ id, weights: CHECKPOINTS }))
  const begun: string[] = []
  const rig = await openRig({
    engines,
    worker: { maxOvertakes },
    observer: { started: ({ job }) => begun.push(job.id) },
  })
  try {
    const random = seededRandom(7)
    const order: string[] = []
    for (let count = 0; count < JOBS; count += 1) {
      const name = random.pick(CHECKPOINTS)
      order.push((await rig.submit({ '1': node('FakeCheckpoint', { ckpt_name: name }) })).id)
    }
    rig.worker.start()
    await Promise.all(order.map((id) => rig.untilStatus(id, 'succeeded')))
    const switches = engines.flatMap(({ ran }) =>
      ran.filter(({ weights }, index) => index > 0 && weights !== ran[index - 1].weights),
    ).length
    return { switches, overtakes: countOvertakes(order, begun) }
  } finally {
    await rig.close()
  }
}

function countOvertakes(submitted: readonly string[], begun: readonly string[]): number[] {
  const places = new Map(submitted.map((id, place) => [id, place]))
  return begun.map((id, turn) => begun.slice(0, turn).filter((other) => places.get(other)! > places.get(id)!).length)
}

test('four checkpoints over two engines: four of five switches are saved, and nobody is overtaken beyond the bound', async () => {
  const plain = await runMix(0)
  const kept = await runMix(MAX_OVERTAKES)
  assert.ok(kept.switches <= plain.switches * 0.2, `${kept.switches} of ${plain.switches} switches are left`)
  assert.ok(Math.max(...kept.overtakes) <= MAX_OVERTAKES, `overtaken by ${Math.max(...kept.overtakes)}`)
  assert.equal(Math.max(...plain.overtakes), 0)
})
