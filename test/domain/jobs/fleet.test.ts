/** Several engines behind one queue: which jobs go where, and what an operator can do about an engine. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readGraph } from '../../../engine/graph/graph-json.ts'
import { systemClock } from '../../../lib/clock.ts'
import { silentLog } from '../../../lib/log.ts'
import { createEngineDirectory } from '../../../src/domain/engine/directory/engine-directory.ts'
import { createFleet } from '../../../src/domain/engine/fleet/fleet.ts'
import { LAST_RANK } from '../../../src/domain/engine/fleet/lane-offers.ts'
import { createLaneTable } from '../../../src/domain/workflows/needs.ts'
import { createFakeFleetEngine } from '../../support/engines/fake-fleet-engine.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { findBusy, fleetTest, stateOf, TWO, withWeights } from './fleet-test.ts'
import { ACCOUNT, GATED, openRig, SAVE } from './job-rig.ts'

fleetTest(
  'a job goes only to an engine that has its weights, and waits while that one is away',
  [
    { id: 'small', weights: ['a.safetensors'] },
    { id: 'large', weights: ['a.safetensors', 'b.safetensors'] },
  ],
  async ({ rig, engines: [small, large] }) => {
    rig.worker.start()
    large.kill()
    const waiting = await rig.submit(withWeights('b.safetensors'))
    await rig.untilStatus((await rig.submit(withWeights('a.safetensors'))).id, 'succeeded')
    assert.equal((await rig.reader.find(ACCOUNT, waiting.id)).status, 'queued')
    large.revive()
    await rig.untilStatus(waiting.id, 'succeeded')
    assert.deepEqual(
      small.ran.map(({ weights }) => weights),
      ['a.safetensors'],
    )
    assert.deepEqual(
      large.ran.map(({ weights }) => weights),
      ['b.safetensors'],
    )
  },
)

fleetTest(
  'a cordoned engine finishes what it runs and gets no more; resumed, it does',
  TWO,
  async ({ rig, engines }) => {
    rig.worker.start()
    const gated = await rig.submit(GATED)
    const [busy, idle] = await findBusy(engines)
    rig.fleet.cordon(idle.id)
    const next = await rig.submit(SAVE)
    rig.fleet.cordon(busy.id)
    busy.fake.openGate()
    await rig.untilStatus(gated.id, 'succeeded')
    assert.equal((await rig.reader.find(ACCOUNT, next.id)).status, 'queued')
    rig.fleet.resume(idle.id)
    await rig.untilStatus(next.id, 'succeeded')
    assert.equal(idle.ran.length, 1)
  },
)

fleetTest(
  'a drained engine gives what it runs to another without spending an attempt',
  TWO,
  async ({ rig, engines }) => {
    rig.worker.start()
    const { id } = await rig.submit(GATED)
    const [busy, idle] = await findBusy(engines)
    assert.equal(rig.fleet.drain(busy.id).state, 'draining')
    await rig.worker.evict(busy.id)
    idle.fake.openGate()
    const job = await rig.untilStatus(id, 'succeeded')
    assert.equal(job.attempt, 1)
    assert.deepEqual(
      idle.ran.map(({ jobId }) => jobId),
      [id],
    )
    assert.equal(stateOf(rig, busy.id), 'cordoned')
  },
)

test('a job goes to another engine than the one that broke it off, though its weights are loaded there', async () => {
  const weights = ['a.safetensors']
  const engines = [createFakeFleetEngine({ id: 'one', weights }), createFakeFleetEngine({ id: 'two', weights })]
  const lanes = createLaneTable()
  await using fleet = createFleet(engines, { clock: systemClock, log: silentLog, hasLanes: true, lanes, retryMs: 0 })
  const directory = createEngineDirectory({ fleet, lanes, nodeId: 'here' })
  const lane = directory.laneOf(readGraph(withWeights('a.safetensors')), 'main')
  const rankOf = (engineId: string) =>
    fleet
      .offers('default')
      .find((offer) => offer.engineId === engineId)
      ?.lanes?.find((each) => each.lane === lane)?.rank
  const good = fleet.take('one', { jobId: 'job', lane })
  await good.end({ isStuck: false, failureCode: null, hasSucceeded: false })
  assert.deepEqual([rankOf('one'), rankOf('two')], [0, 3], 'its weights draw the next job to it')
  const broken = fleet.take('one', { jobId: 'job', lane })
  broken.lose('the connection was reset')
  await broken.end({ isStuck: false, failureCode: null, hasSucceeded: false })
  assert.deepEqual([rankOf('one'), rankOf('two')], [LAST_RANK, 2])
  assert.equal(fleet.offers('default')[0]?.engineId, 'two')
})

fleetTest(
  'jobs whose weights nobody has any more end with a reason instead of waiting for ever',
  [{ id: 'one', weights: ['a.safetensors'] }],
  async ({ rig, engines: [engine] }) => {
    const { id } = await rig.submit(withWeights('a.safetensors'))
    engine.install(['b.safetensors'])
    assert.equal(await rig.lanes.endStranded(), 0, 'a blink costs nothing')
    assert.equal(await rig.lanes.endStranded(), 1)
    const job = await rig.reader.find(ACCOUNT, id)
    assert.equal(job.error?.code, 'no_engine')
    assert.match(job.error?.message ?? '', /a\.safetensors/)
  },
)

test('lanes of jobs that waited across a restart are learnt from the jobs', async () => {
  const weights = ['a.safetensors']
  const before = await openRig({ engines: [createFakeFleetEngine({ id: 'one', weights })] })
  const { id } = await before.submit(withWeights('a.safetensors'))
  await before.crash()
  const engines = [createFakeFleetEngine({ id: 'bare', weights: [] }), createFakeFleetEngine({ id: 'one', weights })]
  const rig = await openRig({ directory: before.directory, engines })
  try {
    await rig.lanes.start()
    rig.worker.start()
    await rig.untilStatus(id, 'succeeded')
    assert.deepEqual(
      engines.map(({ ran }) => ran.length),
      [0, 1],
    )
  } finally {
    await rig.close()
  }
})

test('where more kinds of jobs wait than are kept in memory, each has its turn', async () => {
  const weights = Array.from({ length: 130 }, (_, index) => `${index}.safetensors`)
  const before = await openRig({ engines: [createFakeFleetEngine({ id: 'one', weights })], maxQueued: 1000 })
  const jobs: { readonly id: string; readonly lane: string; readonly weights: string }[] = []
  for (const name of weights) {
    const graph = withWeights(name)
    const lane = before.engines.laneOf(readGraph(graph), 'main')
    jobs.push({ id: (await before.submit(graph)).id, lane, weights: name })
  }
  await before.crash()
  const inOrder = jobs.sort((one, other) => (one.lane < other.lane ? -1 : 1))
  const chosen = [0, 64, 129].map((place) => inOrder[place])
  // What the engine that is there now cannot run goes on waiting.
  const engines = [createFakeFleetEngine({ id: 'one', weights: chosen.map((job) => job.weights) })]
  const rig = await openRig({ directory: before.directory, engines, lanes: { maxLanes: 10 } })
  try {
    rig.worker.start()
    // Half of what is kept is exchanged in each pass.
    for (let pass = 0; pass < 130 / 5 + 2; pass += 1) {
      await rig.lanes.learn()
      assert.ok(rig.engines.knownLanes().length <= 10)
      const known = chosen.filter(({ lane }) => rig.engines.knownLanes().includes(lane))
      await Promise.all(known.map(({ id }) => rig.untilStatus(id, 'succeeded')))
    }
    for (const { id } of chosen) assert.equal((await rig.reader.find(ACCOUNT, id)).status, 'succeeded')
  } finally {
    await rig.close()
  }
})

fleetTest(
  'a worker fills all free slots, and no engine is given more than it has slots',
  [
    { id: 'one', concurrency: 6 },
    { id: 'two', concurrency: 2 },
  ],
  async ({ rig, engines }) => {
    const jobs: string[] = []
    for (let count = 0; count < 12; count += 1) jobs.push((await rig.submit(GATED)).id)
    rig.worker.start()
    const [one, two] = engines
    await Promise.all([one.fake.untilRuns(6), two.fake.untilRuns(2)])
    assert.deepEqual([one.fake.runs.length, two.fake.runs.length], [6, 2])
    for (const { fake } of engines) for (const _ of jobs) fake.openGate()
    for (const id of jobs) await rig.untilStatus(id, 'succeeded')
  },
  { maxRunning: 100, worker: { workers: 20 } },
)

test('the next job begins when the engine has computed the one before, and a drain waits for what is still read from it', async () => {
  const engine = createFakeFleetEngine({ id: 'one' })
  const rig = await openRig({ engines: [engine] })
  try {
    rig.worker.start()
    const jobs = await Promise.all([rig.submit(GATED), rig.submit(GATED), rig.submit(GATED)])
    for (const index of [0, 1]) {
      await engine.fake.untilRuns(index + 1)
      engine.fake.runs[index]?.onComputed?.()
    }
    await engine.fake.untilRuns(3)
    assert.equal(rig.fleet.find('one').running, 1)
    assert.equal(rig.fleet.drain('one').state, 'draining')
    for (const _ of jobs) engine.fake.openGate()
    for (const { id } of jobs) await rig.untilStatus(id, 'succeeded')
    await waitUntil(() => rig.fleet.find('one').state === 'cordoned')
  } finally {
    await rig.close()
  }
})
