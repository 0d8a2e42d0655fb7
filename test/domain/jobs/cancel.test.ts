import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../lib/log.ts'
import { createWireBus } from '../../../src/adapters/bus/wire-bus.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import type { JobStore } from '../../../src/domain/jobs/job-store.ts'
import { createLoopback } from '../../support/bus/loopback-medium.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { ACCOUNT, GATED, HANG, node, openRig, SAVE } from './job-rig.ts'
import { jobTest } from './job-test.ts'

jobTest('a queued job is canceled at once and never runs', async (rig) => {
  const { id } = await rig.submit(SAVE)
  const canceled = await rig.cancelJob(ACCOUNT, id)
  assert.equal(canceled.status, 'canceled')
  assert.ok(canceled.completedAt !== null)
  rig.worker.start()
  await rig.untilStatus((await rig.submit(SAVE)).id, 'succeeded')
  assert.equal(rig.engine.runs.length, 1)
  assert.equal((await rig.cancelJob(ACCOUNT, id)).status, 'canceled')
})

jobTest('a running job becomes canceling, is interrupted and keeps its outputs', async (rig) => {
  rig.worker.start()
  const { id } = await rig.submit({ '1': node('FakeSave'), '2': node('FakeHang') })
  await rig.until(id, (job) => job.outputs.length === 1)
  assert.equal((await rig.cancelJob(ACCOUNT, id)).status, 'canceling')
  const job = await rig.untilStatus(id, 'canceled')
  assert.equal(job.error, null)
  assert.equal(job.outputs.length, 1)
  assert.equal(rig.engine.activeCount(), 0)
})

jobTest(
  'a cancel stops its own job and no other',
  async (rig) => {
    rig.worker.start()
    const victim = await rig.submit(HANG)
    const neighbour = await rig.submit(GATED)
    await rig.engine.untilRuns(2)
    await rig.cancelJob(ACCOUNT, victim.id)
    await rig.untilStatus(victim.id, 'canceled')
    rig.engine.openGate()
    await rig.untilStatus(neighbour.id, 'succeeded')
  },
  { worker: { workers: 2 } },
)

jobTest(
  'a job that finished before the interrupt took hold is succeeded',
  async (rig) => {
    rig.worker.start()
    const { id } = await rig.submit(GATED)
    await rig.engine.untilRuns(1)
    assert.equal((await rig.cancelJob(ACCOUNT, id)).status, 'canceling')
    rig.engine.openGate()
    assert.equal((await rig.untilStatus(id, 'succeeded')).outputs.length, 1)
  },
  { engine: createFakeEngine({ ignoreAbort: true }), worker: { cancelGraceMs: 10_000 } },
)

test('a cancel during the last commit changes nothing about the end', async () => {
  const atFinish = Promise.withResolvers<void>()
  const mayFinish = Promise.withResolvers<void>()
  const holdFinish = (store: JobStore): JobStore => ({
    ...store,
    async commit(lease, change) {
      if (change.finish !== undefined) {
        atFinish.resolve()
        await mayFinish.promise
      }
      return store.commit(lease, change)
    },
  })
  const rig = await openRig({ wrapStore: holdFinish })
  try {
    rig.worker.start()
    const { id } = await rig.submit(SAVE)
    await atFinish.promise
    assert.equal((await rig.cancelJob(ACCOUNT, id)).status, 'canceling')
    mayFinish.resolve()
    assert.equal((await rig.untilStatus(id, 'succeeded')).outputs.length, 1)
    assert.equal((await rig.cancelJob(ACCOUNT, id)).status, 'succeeded')
  } finally {
    await rig.close()
  }
})

test('a cancel whose notice was lost is seen at the next renewal', async () => {
  const rig = await openRig({ worker: { renewEveryMs: 20 } })
  try {
    rig.worker.start()
    const { id } = await rig.submit(HANG)
    await rig.engine.untilRuns(1)
    await rig.store.jobs.cancel(ACCOUNT, id, new Date())
    await rig.untilStatus(id, 'canceled')
  } finally {
    await rig.close()
  }
})

test('an engine that ignores the interrupt is given up, recycled and no longer heard', async () => {
  const stuck: string[] = []
  const recycled = Promise.withResolvers<void>()
  const engine = createFakeEngine({ ignoreAbort: true })
  const rig = await openRig({
    engine,
    worker: { cancelGraceMs: 20 },
    observer: { engineStuck: ({ jobId }) => stuck.push(jobId) },
    recycle: () => recycled.promise,
  })
  try {
    rig.worker.start()
    const { id } = await rig.submit(HANG)
    const next = await rig.submit({ '1': node('FakeSource') })
    await engine.untilRuns(1)
    await rig.cancelJob(ACCOUNT, id)
    await rig.untilStatus(id, 'canceled')
    await waitUntil(async () => stuck.length > 0)
    assert.deepEqual(stuck, [id])
    assert.equal(engine.runs.length, 1, 'the slot waits for the engine to be recycled')
    engine.release()
    recycled.resolve()
    await rig.untilStatus(next.id, 'succeeded')
    assert.equal((await rig.reader.find(ACCOUNT, id)).status, 'canceled')
  } finally {
    await rig.close()
  }
})

jobTest(
  'canceling while an output hangs ends as canceled, never as succeeded without its bytes',
  async (rig) => {
    rig.worker.start()
    const { id } = await rig.submit(SAVE)
    await rig.engine.untilRuns(1)
    await rig.until(id, (job) => job.status === 'running')
    await rig.cancelJob(ACCOUNT, id)
    const job = await rig.untilStatus(id, 'canceled')
    assert.equal(job.outputs.length, 0)
  },
  {
    worker: { cancelGraceMs: 20 },
    storeBlob: () => (source) => {
      // Reads a source that never ends, as from an engine whose connection hangs.
      void source
      return new Promise((_resolve, reject) => setTimeout(reject, 300, new Error('late')))
    },
  },
)

jobTest('an unknown, foreign or malformed id is not found', async (rig) => {
  const { id } = await rig.submit(SAVE)
  const isNotFound = (error: unknown) => error instanceof ServiceError && error.refusal === 'not_found'
  await assert.rejects(rig.cancelJob(ACCOUNT, '01990000-0000-7000-8000-00000000abcd'), isNotFound)
  await assert.rejects(rig.cancelJob('somebody', id), isNotFound)
  await assert.rejects(rig.cancelJob(ACCOUNT, '../../free'), isNotFound)
})

test('a cancel by another process whose notice was lost stops the run once the gap is known', async () => {
  const end = createLoopback().join()
  const bus = createWireBus({ medium: end, links: end.links, log: silentLog })
  const rig = await openRig({ bus, worker: { renewEveryMs: 1_000_000 } })
  try {
    rig.worker.start()
    const { id } = await rig.submit(HANG)
    await rig.engine.untilRuns(1)
    end.cut()
    const outcome = await rig.store.jobs.cancel(ACCOUNT, id, rig.clock.now())
    assert.equal(outcome.outcome, 'canceling')
    end.mend()
    await rig.untilStatus(id, 'canceled')
  } finally {
    await rig.close()
  }
})
