/** Several engines behind one queue: where jobs go, what happens when an engine goes, and what an operator can do about one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readGraph } from '../../../engine/graph/read-graph.ts'
import { systemClock } from '../../../lib/clock.ts'
import type { JsonObject } from '../../../lib/json/lossless-json.ts'
import { silentLog } from '../../../lib/log.ts'
import { createEngineDirectory } from '../../../src/domain/engine/directory/engine-directory.ts'
import { createFleet, NEVER_RECYCLE } from '../../../src/domain/engine/fleet/fleet.ts'
import type { ChosenLane } from '../../../src/domain/engine/fleet/lane-offers.ts'
import { createLaneTable } from '../../../src/domain/engine/fleet/lane-table.ts'
import type { Claim } from '../../../src/domain/jobs/job-store.ts'
import {
  createFakeFleetEngine,
  type FakeFleetEngine,
  type FakeFleetEngineOptions,
} from '../../support/engines/fake-fleet-engine.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { ACCOUNT, GATED, HANG, node, openRig, type Rig, type RigOptions, SAVE } from './job-rig.ts'

interface FleetRig {
  readonly rig: Rig
  readonly engines: readonly FakeFleetEngine[]
}

function fleetTest(
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

const TWO = [{ id: 'one' }, { id: 'two' }]

function withWeights(name: string, graph: JsonObject = SAVE): JsonObject {
  return { ...graph, '100': node('FakeCheckpoint', { ckpt_name: name }) }
}

function stateOf(rig: Rig, id: string) {
  return rig.fleet.status().find((engine) => engine.id === id)?.state
}

/** Which engine runs the only job, and which does not. */
async function findBusy(engines: readonly FakeFleetEngine[]): Promise<[busy: FakeFleetEngine, idle: FakeFleetEngine]> {
  await Promise.race(engines.map(({ fake }) => fake.untilRuns(1)))
  const [one, two] = engines
  return one.fake.runs.length > 0 ? [one, two] : [two, one]
}

fleetTest('a job whose engine is killed moves to another one at once, and ends once', TWO, async ({ rig, engines }) => {
  rig.worker.start()
  const { id } = await rig.submit(GATED)
  const [busy, idle] = await findBusy(engines)
  busy.kill()
  idle.fake.openGate()
  const job = await rig.untilStatus(id, 'succeeded')
  assert.equal(job.attempt, 2)
  assert.equal(job.outputs.length, 1)
  assert.deepEqual(busy.completed, [])
  assert.deepEqual(idle.completed, [`${id}/2`])
  assert.equal(rig.commits.filter(({ finish }) => finish !== undefined).length, 1)
  assert.equal(stateOf(rig, busy.id), 'lost')
})

fleetTest(
  'the next job begins when the engine has computed the one before, and an engine is drained when it has no more to hand out',
  [{ id: 'one' }],
  async ({ rig, engines: [engine] }) => {
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
  },
  { worker: { workers: 1 } },
)

fleetTest('a job that loses its engine three times fails and says so', [{ id: 'one' }], async ({ rig, engines }) => {
  const [engine] = engines
  rig.worker.start()
  const { id } = await rig.submit(GATED)
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    await engine.fake.untilRuns(attempt)
    engine.kill()
    if (attempt < 3) await rig.until(id, (job) => job.status === 'queued' && job.attempt === attempt)
    engine.revive()
  }
  const job = await rig.untilStatus(id, 'failed')
  assert.equal(job.error?.code, 'engine_lost')
  assert.equal(job.attempt, 3)
})

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
  'a run without memory frees the engine and is tried once more; the second time the job fails',
  [{ id: 'one', canFree: true }],
  async ({ rig, engines: [engine] }) => {
    rig.worker.start()
    engine.failNext('out_of_memory')
    const lucky = await rig.untilStatus((await rig.submit(SAVE)).id, 'succeeded')
    assert.equal(lucky.attempt, 2)
    assert.equal(engine.freed, 1)
    engine.failNext('out_of_memory')
    engine.failNext('out_of_memory')
    const unlucky = await rig.untilStatus((await rig.submit(SAVE)).id, 'failed')
    assert.equal(unlucky.error?.code, 'out_of_memory')
    assert.equal(unlucky.attempt, 2)
  },
)

fleetTest(
  'a faulty graphics card quarantines the engine, and the job runs on another',
  TWO,
  async ({ rig, engines }) => {
    const [one, two] = engines
    rig.worker.start()
    one.failNext('cuda_fault')
    const job = await rig.untilStatus((await rig.submit(SAVE)).id, 'succeeded')
    assert.equal(job.attempt, 2)
    assert.deepEqual(two.completed, [`${job.id}/2`])
    assert.equal(stateOf(rig, 'one'), 'quarantined')
    // Nobody is left to take over: the job fails with what the engine said, at once.
    two.failNext('cuda_fault')
    const alone = await rig.untilStatus((await rig.submit(SAVE)).id, 'failed')
    assert.deepEqual([alone.error?.code, alone.attempt], ['cuda_fault', 1])
  },
)

fleetTest(
  'a job that breaks graphics cards is not handed on for ever',
  [...TWO, { id: 'three' }],
  async ({ rig, engines }) => {
    for (const engine of engines) engine.failNext('cuda_fault')
    rig.worker.start()
    const job = await rig.untilStatus((await rig.submit(SAVE)).id, 'failed')
    assert.deepEqual([job.error?.code, job.attempt], ['cuda_fault', 2])
    assert.equal(stateOf(rig, 'three'), 'ready')
  },
)

fleetTest(
  'a supervised engine with a fault is replaced by a fresh process instead',
  [{ id: 'one', isSupervised: true }],
  async ({ rig, engines: [engine] }) => {
    rig.worker.start()
    engine.failNext('cuda_fault')
    await rig.untilStatus((await rig.submit(SAVE)).id, 'failed')
    await rig.untilStatus((await rig.submit(SAVE)).id, 'succeeded')
    assert.equal(engine.recycled.length, 1)
    assert.equal(stateOf(rig, 'one'), 'ready')
  },
)

fleetTest(
  'a remote engine that ignores a cancel is quarantined, and the job is canceled all the same',
  [{ id: 'one', faults: { ignoreAbort: true } }],
  async ({ rig, engines: [engine] }) => {
    rig.worker.start()
    const { id } = await rig.submit(HANG)
    await engine.fake.untilRuns(1)
    await rig.cancelJob(ACCOUNT, id)
    await rig.untilStatus(id, 'canceled')
    await waitUntil(() => stateOf(rig, 'one') === 'quarantined')
    engine.revive()
    assert.equal(stateOf(rig, 'one'), 'ready', 'a new process has nothing to answer for')
  },
  { worker: { cancelGraceMs: 20 } },
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
      .offers()
      .find((offer) => offer.engineId === engineId)
      ?.lanes?.find((each) => each.lane === lane)?.rank
  const good = fleet.take('one', lane)
  await good.end({ isStuck: false, failureCode: null })
  assert.deepEqual([rankOf('one'), rankOf('two')], [0, 3], 'its weights draw the next job to it')
  const broken = fleet.take('one', lane)
  broken.lose('the connection was reset')
  await broken.end({ isStuck: false, failureCode: null })
  assert.deepEqual([rankOf('one'), rankOf('two')], [3, 2])
  assert.equal(fleet.offers()[0]?.engineId, 'two')
})

fleetTest(
  'an engine that is back as a new process is not paused for what the old one broke off',
  [{ id: 'one' }],
  async ({ rig, engines: [engine] }) => {
    rig.worker.start()
    const { id } = await rig.submit(GATED)
    await engine.fake.untilRuns(1)
    engine.kill()
    engine.revive()
    engine.fake.openGate()
    assert.equal((await rig.untilStatus(id, 'succeeded')).attempt, 2)
  },
  { fleet: { retryMs: 600_000 } },
)

fleetTest(
  'a supervised engine is replaced between jobs after so many of them',
  [{ id: 'one', isSupervised: true }],
  async ({ rig, engines: [engine] }) => {
    rig.worker.start()
    for (let count = 0; count < 6; count += 1) await rig.untilStatus((await rig.submit(SAVE)).id, 'succeeded')
    assert.ok(engine.recycled.length >= 2)
    assert.equal(engine.completed.length, 6, 'no run was cut off')
  },
  { fleet: { recycleLimits: { ...NEVER_RECYCLE, maxJobs: 2 } } },
)

fleetTest(
  'a supervised engine that occupies too much or has run too long is replaced between jobs, never under one',
  [{ id: 'one', isSupervised: true }],
  async ({ rig, engines: [engine] }) => {
    rig.worker.start()
    const old = { startedAt: new Date(rig.clock.now().getTime() - 60_001) }
    for (const [turn, signs] of [{ memoryBytes: 2 ** 20 + 1 }, old].entries()) {
      const { id } = await rig.submit(GATED)
      await engine.fake.untilRuns(turn + 1)
      engine.wear(signs)
      assert.equal(engine.recycled.length, turn, 'not while it runs a job')
      engine.fake.openGate()
      await rig.untilStatus(id, 'succeeded')
    }
    await rig.untilStatus((await rig.submit(SAVE)).id, 'succeeded')
    assert.deepEqual(engine.recycled, ['it occupies 1 MiB', 'it has run for 60 s'])
  },
  { fleet: { recycleLimits: { ...NEVER_RECYCLE, maxMemoryBytes: 2 ** 20, maxAgeMs: 60_000 } } },
)

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

/** Takes several claims at once, as a store does for which that costs less. `asked`: how many each time. */
function takingSeveral(asked: number[]): RigOptions['wrapStore'] {
  return (store) => ({
    ...store,
    async claimSeveral({ leaseIds, offersAfter, ...request }) {
      asked.push(leaseIds.length)
      const chosen: ChosenLane[] = []
      const settled: PromiseSettledResult<Claim | null>[] = []
      for (const leaseId of leaseIds) {
        const claim = await store.claim({ ...request, leaseId, engines: offersAfter(chosen) })
        if (claim !== null) chosen.push({ engineId: claim.engineId, lane: claim.needs })
        settled.push({ status: 'fulfilled', value: claim })
      }
      return settled
    },
  })
}

const asked: number[] = []

fleetTest(
  'a worker with free slots claims several jobs at once, and no engine is given more than it has slots',
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
    assert.ok(Math.max(...asked) >= 4, `${asked}`)
    assert.deepEqual([one.fake.runs.length, two.fake.runs.length], [6, 2])
    for (const { fake } of engines) for (const _ of jobs) fake.openGate()
    for (const id of jobs) await rig.untilStatus(id, 'succeeded')
  },
  { maxRunning: 100, worker: { workers: 20 }, wrapStore: takingSeveral(asked) },
)
