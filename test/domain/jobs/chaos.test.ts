/**
 * The whole machinery under random trouble: engines that die, hang or ignore interrupts, cancels at any moment, lost
 * notices, workers that are drained and replaced. Every accepted job must end exactly once, with bytes behind every output.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Job } from '../../../src/domain/jobs/job.ts'
import { isTerminal } from '../../../src/domain/jobs/transitions.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { ACCOUNT, HANG, node, openRig, type Rig } from './job-rig.ts'

const JOBS = 60

function pickGraph(random: SeededRandom, index: number) {
  return random.pick([
    { '1': node('FakeSave', { text: `job ${index} ` }) },
    { '1': node('FakeSampler', { steps: 5 }), '2': node('FakeSave', { count: 3, text: `job ${index} ` }) },
    { '1': node('FakeValue', { value: index, key: 'number' }) },
    { '1': node('FakeSave', { text: `job ${index} ` }), '2': node('FakeFail') },
    HANG,
  ])
}

async function makeTrouble(rig: Rig, random: SeededRandom, ids: readonly string[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const { faults } = rig.engine
    faults.throwAfter = random.next() < 0.3 ? random.between(0, 4) : null
    faults.ignoreAbort = random.next() < 0.2
    faults.duplicateEvents = random.next() < 0.5
    if (ids.length > 0 && random.next() < 0.7) await rig.cancelJob(ACCOUNT, random.pick(ids))
    // A cancel that nobody is told about.
    if (ids.length > 0 && random.next() < 0.2) await rig.store.jobs.cancel(ACCOUNT, random.pick(ids), new Date())
    if (random.next() < 0.2) await rig.recover()
    await new Promise((resolve) => setTimeout(resolve, random.between(0, 8)))
  }
}

for (const seed of [11, 12]) {
  test(`random faults ${seed}: every job ends exactly once`, async () => {
    const random = seededRandom(seed)
    const finished = new Map<string, number>()
    const rig = await openRig({
      engine: createFakeEngine(),
      observer: { finished: ({ jobId }) => finished.set(jobId, (finished.get(jobId) ?? 0) + 1) },
      worker: { workers: 4, renewEveryMs: 15, leaseMs: 300, cancelGraceMs: 25, maxRunMs: 400, firstProgressMs: 1 },
    })
    try {
      rig.worker.start()
      const ids: string[] = []
      const calm = new AbortController()
      const trouble = makeTrouble(rig, random, ids, calm.signal)
      for (let index = 0; index < JOBS; index++) ids.push((await rig.submit(pickGraph(random, index))).id)
      const jobs: Job[] = []
      for (const id of ids) jobs.push(await untilEnd(rig, id))
      calm.abort()
      await trouble
      for (const job of jobs) {
        // One that was canceled behind our back while it waited is ended by the store alone, and nobody hears of it.
        const isSilent = job.status === 'canceled' && !finished.has(job.id)
        assert.ok(isSilent || finished.get(job.id) === 1, `${job.id} ended ${finished.get(job.id)} times`)
        for (const output of job.outputs) assert.equal((await rig.blobs.stat(output.hash))?.sizeBytes, output.sizeBytes)
        assert.deepEqual(await rig.store.jobs.find(ACCOUNT, job.id, new Date()), job)
      }
      assert.deepEqual(await rig.store.accounts.findUse(ACCOUNT), { running: 0, queued: 0 })
      assert.equal(await rig.store.accounts.repairCounters(), 0)
    } finally {
      await rig.close()
    }
  })
}

/** By looking, because some of the notices are held back. */
async function untilEnd(rig: Rig, id: string): Promise<Job> {
  return waitUntil(async () => {
    const job = await rig.store.jobs.find(ACCOUNT, id, new Date())
    assert.ok(job !== null)
    return isTerminal(job.status) ? job : null
  })
}
