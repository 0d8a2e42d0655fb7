/** Engines that are lost, faulty or worn: where their jobs go, and when an engine is replaced. */
import assert from 'node:assert/strict'
import { NEVER_RECYCLE } from '../../../src/domain/engine/fleet/fleet.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { findBusy, fleetTest, stateOf, TWO } from './fleet-test.ts'
import { ACCOUNT, GATED, HANG, SAVE } from './job-rig.ts'

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
    assert.equal(job.attempt, 1, "the fault was not the job's")
    assert.deepEqual(two.completed, [`${job.id}/1`])
    assert.equal(stateOf(rig, 'one'), 'quarantined')
    // Nobody is left to take over: the job fails with what the engine said, at once.
    two.failNext('cuda_fault')
    const alone = await rig.untilStatus((await rig.submit(SAVE)).id, 'failed')
    assert.deepEqual([alone.error?.code, alone.attempt], ['cuda_fault', 1])
    assert.equal(stateOf(rig, 'two'), 'ready', 'nobody could stand in for it')
  },
)

fleetTest(
  'a job that breaks graphics cards is not handed on for ever',
  [...TWO, { id: 'three' }],
  async ({ rig, engines }) => {
    for (const engine of engines) engine.failNext('cuda_fault')
    rig.worker.start()
    const job = await rig.untilStatus((await rig.submit(SAVE)).id, 'failed')
    assert.deepEqual([job.error?.code, job.attempt], ['cuda_fault', 1])
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
    const [first, second, ...further] = engine.recycled
    assert.deepEqual([first, further], ['it occupies 1 MiB', []])
    // By as much longer as the jobs before took here.
    assert.match(second, /^it has run for \d+ s$/)
  },
  { fleet: { recycleLimits: { ...NEVER_RECYCLE, maxMemoryBytes: 2 ** 20, maxAgeMs: 60_000 } } },
)

fleetTest(
  'an engine that does not say what it can run keeps nobody waiting, and is asked again',
  [{ id: 'one' }],
  async ({ rig, engines: [engine] }) => {
    let asked = 0
    const refreshList = () => {
      asked += 1
      return new Promise<void>(() => {})
    }
    Object.assign(engine, { refreshList })
    await rig.fleet.refreshLists()
    await rig.fleet.refreshLists()
    assert.equal(asked, 2)
  },
  { fleet: { refreshWithinMs: 1 } },
)
