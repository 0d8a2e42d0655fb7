import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newUuidV4 } from '../../../lib/ids.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import type { JobStore } from '../../../src/domain/jobs/job-store.ts'
import type { JobStatus } from '../../../src/domain/jobs/transitions.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { ACCOUNT, ANYTHING, GATED, HANG, node, openRig, RETENTION_MS, type Rig, SAVE } from './job-rig.ts'
import { jobTest } from './job-test.ts'

function claimAs(rig: Rig, leaseId = newUuidV4()) {
  const now = rig.clock.now()
  const leaseUntil = new Date(now.getTime() + 30_000)
  return rig.store.jobs.claim({ pool: 'main', workerId: 'other', leaseId, leaseUntil, now, ...ANYTHING })
}

test('a worker that lost its lease stops and changes nothing', async () => {
  const clock = createFixedClock()
  const lost: string[] = []
  const rig = await openRig({ clock, observer: { leaseLost: ({ jobId }) => lost.push(jobId) } })
  try {
    rig.worker.start()
    const { id } = await rig.submit({ '1': node('FakeHang'), '2': node('FakeSave') })
    await rig.engine.untilRuns(1)
    clock.advance(31_000)
    // Another process reaps the job and takes it, while this worker's engine is at it.
    await rig.store.jobs.reap({ now: clock.now(), maxAttempts: 3, error: WORKER_LOST })
    const other = await claimAs(rig)
    assert.equal(other?.job.id, id)
    assert.equal(other?.job.attempt, 2)
    rig.bus.publishChanged({ jobId: id, accountId: ACCOUNT, version: other?.job.version ?? 0 })
    await waitUntil(() => rig.worker.stats().running <= 0)
    assert.deepEqual(lost, [id])
    const job = await rig.store.jobs.find(ACCOUNT, id, clock.now())
    assert.equal(job?.status, 'running')
    assert.equal(job?.version, other?.job.version)
    assert.equal(rig.commits.filter((change) => change.finish !== undefined).length, 0)
  } finally {
    await rig.close()
  }
})

/** The first claim takes a job and is not answered. `whenTaken`: at once, or only after the worker has looked for it. */
function losingFirstClaim(whenTaken: 'at once' | 'later'): (store: JobStore) => JobStore {
  return (store) => {
    let isLost = false
    let takeLater = async (): Promise<unknown> => null
    return {
      ...store,
      async claim(request) {
        if (isLost) return store.claim(request)
        isLost = true
        if (whenTaken === 'at once') await store.claim(request)
        else takeLater = () => store.claim(request)
        throw new ServiceError('store_unavailable', 'the connection was cut')
      },
      async findClaim(leaseId) {
        const found = await store.findClaim(leaseId)
        await takeLater()
        takeLater = async () => null
        return found
      },
    }
  }
}

for (const whenTaken of ['at once', 'later'] as const) {
  test(`a claim whose answer is lost costs the job no attempt, also when it takes it ${whenTaken}`, async () => {
    const rig = await openRig({ wrapStore: losingFirstClaim(whenTaken), worker: { renewEveryMs: 20 } })
    try {
      const { id } = await rig.submit(SAVE)
      rig.worker.start()
      assert.equal((await rig.untilStatus(id, 'succeeded')).attempt, 1)
    } finally {
      await rig.close()
    }
  })
}

test('the last write of an old owner is refused by the store', async () => {
  const clock = createFixedClock()
  const rig = await openRig({ clock, engine: createFakeEngine({ ignoreAbort: true }) })
  try {
    rig.worker.start()
    const { id } = await rig.submit(GATED)
    await rig.engine.untilRuns(1)
    clock.advance(31_000)
    await rig.store.jobs.reap({ now: clock.now(), maxAttempts: 3, error: WORKER_LOST })
    const other = await claimAs(rig)
    // No notice reaches the first owner: it finishes its run and tries to write it.
    rig.engine.openGate()
    await waitUntil(() => rig.worker.stats().running <= 0)
    const job = await rig.store.jobs.find(ACCOUNT, id, clock.now())
    assert.deepEqual([job?.status, job?.outputs.length, job?.version], ['running', 0, other?.job.version])
  } finally {
    await rig.close()
  }
})

test('a lease is kept alive for as long as the run takes', async () => {
  const clock = createFixedClock()
  let onRenewed = () => {}
  const watchRenewals = (store: JobStore): JobStore => ({
    ...store,
    async renew(leases, until) {
      const held = await store.renew(leases, until)
      onRenewed()
      return held
    },
  })
  const rig = await openRig({ clock, wrapStore: watchRenewals, worker: { renewEveryMs: 2 } })
  try {
    rig.worker.start()
    const { id } = await rig.submit(GATED)
    await rig.engine.untilRuns(1)
    for (let count = 0; count < 5; count++) {
      clock.advance(20_000)
      // A renewal that was under way when the clock moved still counts from before.
      for (let renewal = 0; renewal < 2; renewal++) {
        const renewed = Promise.withResolvers<void>()
        onRenewed = renewed.resolve
        await renewed.promise
      }
      assert.deepEqual(await rig.recover(), [])
    }
    rig.engine.openGate()
    assert.equal((await rig.untilStatus(id, 'succeeded')).attempt, 1)
  } finally {
    await rig.close()
  }
})

test('the reaper gives a job three attempts and then fails it as worker_lost', async () => {
  const clock = createFixedClock()
  const rig = await openRig({ clock })
  try {
    const { id } = await rig.submit(SAVE)
    const statuses: (JobStatus | undefined)[] = []
    for (let attempt = 1; attempt <= 3; attempt++) {
      assert.equal((await claimAs(rig))?.job.attempt, attempt)
      assert.deepEqual(await rig.recover(), [], 'the lease still stands')
      clock.advance(31_000)
      statuses.push((await rig.recover())[0]?.status)
    }
    assert.deepEqual(statuses, ['queued', 'queued', 'failed'])
    const job = await rig.reader.find(ACCOUNT, id)
    assert.equal(job.error?.code, 'worker_lost')
    assert.deepEqual(job.completedAt, clock.now())
    assert.equal(await claimAs(rig), null)
  } finally {
    await rig.close()
  }
})

test('after a crash the next process takes its jobs back at once', async () => {
  const clock = createFixedClock()
  const dead = await openRig({ clock })
  dead.worker.start()
  const running = await dead.submit(GATED)
  await dead.engine.untilRuns(1)
  const canceling = await dead.submit(SAVE)
  await claimAs(dead)
  await dead.cancelJob(ACCOUNT, canceling.id)
  await dead.crash()

  const rig = await openRig({ clock, directory: dead.directory })
  try {
    await rig.store.jobs.leave(await rig.store.jobs.findRuns({}), clock.now())
    const touched = await rig.recover()
    assert.equal(touched.length, 2)
    const canceled = await rig.reader.find(ACCOUNT, canceling.id)
    assert.equal(canceled.status, 'canceled')
    assert.deepEqual(canceled.completedAt, clock.now())
    rig.engine.openGate()
    rig.worker.start()
    const job = await rig.untilStatus(running.id, 'succeeded')
    assert.equal(job.attempt, 2)
  } finally {
    await rig.close()
  }
})

jobTest('a drain lets a run finish before the deadline and claims nothing more', async (rig) => {
  rig.worker.start()
  const first = await rig.submit(GATED)
  await rig.engine.untilRuns(1)
  const drained = rig.worker.drain({ deadline: new Date(Date.now() + 10_000) })
  const second = await rig.submit(GATED)
  rig.engine.openGate()
  await drained
  assert.equal((await rig.reader.find(ACCOUNT, first.id)).status, 'succeeded')
  assert.equal((await rig.reader.find(ACCOUNT, second.id)).status, 'queued')
  assert.deepEqual(rig.worker.stats(), { workers: 1, running: 0, isDraining: true })
})

jobTest(
  'what a drain cannot finish goes back to the queue without spending an attempt',
  async (rig) => {
    rig.worker.start()
    const { id } = await rig.submit(HANG)
    const canceling = await rig.submit(HANG)
    await rig.engine.untilRuns(2)
    rig.engine.faults.ignoreAbort = true
    await rig.store.jobs.cancel(ACCOUNT, canceling.id, new Date())
    await rig.worker.drain({ deadline: new Date(Date.now() + 20) })
    const job = await rig.reader.find(ACCOUNT, id)
    assert.deepEqual([job.status, job.attempt], ['queued', 0])
    assert.equal((await rig.reader.find(ACCOUNT, canceling.id)).status, 'canceled')
    assert.deepEqual(await rig.store.accounts.findUse(ACCOUNT), { running: 0, queued: 1 })
  },
  { worker: { workers: 2, cancelGraceMs: 20 } },
)

test('a job past its retention expires, its run stops, and it is gone after the grace', async () => {
  const clock = createFixedClock()
  const rig = await openRig({ clock })
  try {
    rig.worker.start()
    const running = await rig.submit(HANG)
    await rig.engine.untilRuns(1)
    const queued = await rig.submit(SAVE)
    const done = await rig.submit(SAVE)
    await rig.cancelJob(ACCOUNT, done.id)
    assert.equal(await rig.expiry.expireLive(), 0)
    clock.advance(RETENTION_MS)
    assert.equal(await rig.expiry.expireLive(), 2)
    await waitUntil(() => rig.worker.stats().running <= 0)
    for (const { id } of [running, queued]) assert.equal((await rig.reader.find(ACCOUNT, id)).status, 'expired')
    await assert.rejects(rig.reader.find(ACCOUNT, done.id), /no job/)
    assert.equal(await rig.expiry.removeOld(), 1)
    clock.advance(3_600_000)
    assert.equal(await rig.expiry.removeOld(), 2)
    await assert.rejects(rig.reader.find(ACCOUNT, running.id), /no job/)
    assert.deepEqual(await rig.store.accounts.findUse(ACCOUNT), { running: 0, queued: 0 })
  } finally {
    await rig.close()
  }
})

const WORKER_LOST = { code: 'worker_lost', message: 'lost', nodeId: null, classType: null, traceback: null }
