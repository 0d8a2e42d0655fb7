/** Runs that lie ready on an engine: jobs that wait like any other until the engine begins them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFakeFleetEngine, type FakeFleetEngine } from '../../support/engines/fake-fleet-engine.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { ACCOUNT, GATED, openRig, type Rig, type RigOptions, SAVE } from './job-rig.ts'

interface Laid {
  readonly rig: Rig
  readonly engine: FakeFleetEngine
  readonly other: FakeFleetEngine
  /** Runs on the engine behind its gate. */
  readonly first: string
  /** Lie ready behind it, in this order. */
  readonly next: readonly string[]
}

// However slow the machine: work of a day may lie ready, and for a day.
const DAY_MS = 86_400_000

function readyTest(name: string, body: (laid: Laid) => Promise<void>, options: RigOptions = {}): void {
  test(name, async () => {
    const engine = createFakeFleetEngine({ id: 'one', hasQueue: true })
    const other = createFakeFleetEngine({ id: 'other', state: 'lost' })
    const { worker, ...rest } = options
    const rig = await openRig({
      engines: [engine, other],
      fleet: { readyMs: DAY_MS },
      worker: { readyForMs: DAY_MS, ...worker },
      ...rest,
    })
    try {
      rig.worker.start()
      // Nothing lies ready on an engine that has not shown yet how quick it is.
      await rig.untilStatus((await rig.submit(SAVE)).id, 'succeeded')
      const first = (await rig.submit(GATED)).id
      await engine.fake.untilRuns(2)
      const next = [(await rig.submit(GATED)).id, (await rig.submit(GATED)).id]
      await waitUntil(() => engine.ran.length >= 4)
      await body({ rig, engine, other, first, next })
    } finally {
      engine.fake.release()
      await rig.close()
    }
  })
}

const find = (rig: Rig, id: string) => rig.store.jobs.find(ACCOUNT, id, rig.clock.now())

async function postedBehind(engine: FakeFleetEngine, count: number): Promise<string[]> {
  await waitUntil(() => engine.ran.length >= count)
  return engine.ran.slice(4).map(({ jobId }) => jobId)
}

readyTest('a job that lies ready waits, in the store and for everybody, until its engine begins it', async (laid) => {
  const { rig, engine, first, next } = laid
  for (const id of next) {
    const job = await find(rig, id)
    assert.deepEqual([job?.status, job?.attempt, job?.startedAt], ['queued', 0, null])
  }
  assert.equal((await rig.store.jobs.countByStatus()).queued, 2)
  assert.equal(rig.fleet.find('one').running, 1)
  engine.fake.openGate()
  await rig.untilStatus(first, 'succeeded')
  const begun = await rig.untilStatus(next[0] ?? '', 'running')
  assert.equal(begun.attempt, 1)
  assert.equal((await find(rig, next[1] ?? ''))?.status, 'queued')
  for (const _ of next) engine.fake.openGate()
  for (const id of next) assert.equal((await rig.untilStatus(id, 'succeeded')).outputs.length, 1)
  assert.equal(engine.ran.length, 4)
})

readyTest('a cancel ends it at once, and its engine never begins it', async ({ rig, engine, first, next }) => {
  const [gone = '', kept = ''] = next
  assert.equal((await rig.cancelJob(ACCOUNT, gone)).status, 'canceled')
  engine.fake.openGate()
  engine.fake.openGate()
  await rig.untilStatus(first, 'succeeded')
  await rig.untilStatus(kept, 'succeeded')
  assert.deepEqual(engine.fake.runs.map(({ jobId }) => jobId).slice(1), [first, kept])
})

readyTest('it gives way to a job of a higher priority', async ({ rig, engine, next }) => {
  const urgent = (await rig.submit(GATED, { priority: 10 })).id
  assert.equal((await postedBehind(engine, 5))[0], urgent)
  for (let gates = 0; gates < 4; gates++) engine.fake.openGate()
  for (const id of [...next, urgent]) await rig.untilStatus(id, 'succeeded')
  const order = engine.fake.runs.map(({ jobId }) => jobId)
  for (const id of next) assert.ok(order.indexOf(urgent) < order.indexOf(id))
})

readyTest('another engine leaves it alone and takes what lies behind', async (laid) => {
  const { rig, engine, other, first, next } = laid
  other.revive()
  const behind: string[] = []
  for (let jobs = 0; jobs < 8; jobs++) behind.push((await rig.submit(GATED)).id)
  await other.fake.untilRuns(1)
  assert.ok(behind.includes(other.ran[0]?.jobId ?? ''))
  for (const { fake } of [engine, other]) for (let gates = 0; gates < 11; gates++) fake.openGate()
  for (const id of [first, ...next, ...behind]) assert.equal((await rig.untilStatus(id, 'succeeded')).attempt, 1)
  assert.equal(engine.fake.runs.length + other.fake.runs.length, 12)
})

readyTest('it costs no attempt when its engine is lost', async ({ rig, engine, other, first, next }) => {
  engine.kill()
  other.revive()
  for (let gates = 0; gates < 3; gates++) other.fake.openGate()
  assert.equal((await rig.untilStatus(first, 'succeeded')).attempt, 2)
  for (const id of next) assert.equal((await rig.untilStatus(id, 'succeeded')).attempt, 1)
})

readyTest('nothing of it is left when the process dies', async ({ rig, next }) => {
  await rig.crash()
  const again = await openRig({ directory: rig.directory })
  try {
    for (const id of next)
      assert.deepEqual([(await find(again, id))?.status, (await find(again, id))?.attempt], ['queued', 0])
  } finally {
    await again.close()
  }
})

readyTest(
  'it is withdrawn when what is computed before it takes long',
  async ({ rig, engine, other, next }) => {
    other.revive()
    for (const _ of next) other.fake.openGate()
    for (const id of next) assert.equal((await rig.untilStatus(id, 'succeeded')).attempt, 1)
    assert.equal(engine.fake.runs.length, 2)
  },
  { worker: { readyForMs: 20 } },
)

readyTest('a drained engine gives it up', async ({ rig, engine, other, first, next }) => {
  rig.fleet.drain('one')
  other.revive()
  for (const _ of next) other.fake.openGate()
  for (const id of next) await rig.untilStatus(id, 'succeeded')
  engine.fake.openGate()
  await rig.untilStatus(first, 'succeeded')
  await waitUntil(() => rig.fleet.find('one').state === 'cordoned')
})

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
