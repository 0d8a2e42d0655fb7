/** How every store of run records behaves: the queue as it stands, the history of what has run, and filtered lists. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { Output, Submission } from '../../src/domain/jobs/job.ts'
import type { NewJob } from '../../src/domain/jobs/job-store.ts'
import type { JobFilter, RecordedJob } from '../../src/domain/jobs/read/recorded-jobs.ts'
import type { RunRecord } from '../../src/domain/jobs/run/record/run-record.ts'
import {
  at,
  DAY_MS,
  newOutput,
  START,
  type StoreOpener,
  shareStore,
  Tenant,
  type WholeStoreUnderTest,
} from './store-under-test.ts'

const RUN: RunRecord = {
  startedAtMs: START.getTime(),
  cached: { nodeIds: ['1'], atMs: START.getTime() },
  nodes: [{ nodeId: '9', displayNodeId: '9', parentNodeId: null, output: { text: ['ä', 1, null] } }],
  executed: ['9'],
  stoppedAt: null,
  failure: null,
  endedAtMs: START.getTime() + 5,
}

const EVERYTHING: JobFilter = {
  ...{ statuses: null, workflowId: null, outputType: null, limit: 100, offset: 0 },
  ...{ sortBy: 'created_at', order: 'desc' },
}

function newSubmission(fields: Partial<Submission> = {}): Submission {
  const rest = { clientId: 'client', workflowId: null, extraData: '{"a":1}', outputs: ['9'], wholeWorkflow: null }
  return { number: '12345678901234567890', ...rest, ...fields }
}

const ids = (records: readonly RecordedJob[]) => records.map(({ job }) => job.id)

interface Ended {
  readonly fields?: Partial<NewJob>
  readonly startedMs?: number
  readonly endedMs: number
  readonly outputs?: readonly Output[]
}

/** Runs a job from its submit to its end and returns its id. */
async function runToEnd(tenant: Tenant, { fields = {}, startedMs = 0, endedMs, outputs = [] }: Ended): Promise<string> {
  const { job, lease } = await tenant.run(fields, at(startedMs))
  if (outputs.length > 0) await tenant.store.jobs.commit(lease, { outputs })
  await tenant.store.jobs.commit(lease, {
    finish: { status: 'succeeded', from: ['running'], at: at(endedMs), error: null, record: RUN },
  })
  return job.id
}

export function testRunRecordStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('run records', () => {
    const store = shareStore(opener)
    const records = () => store().records

    test('hold the graph, the submission and the run as they were stored', async () => {
      const tenant = await Tenant.create(store())
      const submission = newSubmission({ workflowId: 'w', wholeWorkflow: '{"2":{}}' })
      const workflow = '{"1":{"seed":18446744073709551615}}'
      const jobId = await runToEnd(tenant, { fields: { workflow, submission }, endedMs: 5 })
      const found = await records().findRecord(tenant.accountId, jobId, START)
      assert.ok(found !== null)
      assert.deepEqual(found.job, await tenant.find(jobId))
      assert.deepEqual([found.workflow, found.submission, found.run], [workflow, submission, RUN])
      assert.equal(found.isHidden, false)
    })

    test('have no run until the job has ended, and no submission where none was given', async () => {
      const tenant = await Tenant.create(store())
      const { job } = await tenant.run()
      const found = await records().findRecord(tenant.accountId, job.id, START)
      assert.deepEqual([found?.run, found?.submission], [null, null])
    })

    test('are not found for another account, nor past their retention', async () => {
      const [tenant, stranger] = [await Tenant.create(store()), await Tenant.create(store())]
      const jobId = await runToEnd(tenant, { endedMs: 5 })
      assert.equal(await records().findRecord(stranger.accountId, jobId, START), null)
      assert.equal(await records().findRecord(tenant.accountId, randomUUID(), START), null)
      assert.notEqual(await records().findRecord(tenant.accountId, jobId, at(7 * DAY_MS - 1)), null)
      assert.equal(await records().findRecord(tenant.accountId, jobId, at(7 * DAY_MS)), null)
    })
  })

  describe('the queue as it stands', () => {
    const store = shareStore(opener)

    test('has held jobs by their start, then waiting ones by priority and age, so many of each', async () => {
      const [tenant, stranger] = [await Tenant.create(store()), await Tenant.create(store())]
      await stranger.submit()
      const first = await tenant.run({}, at(2))
      const second = await tenant.run({}, at(1))
      const [low, high] = [await tenant.submit(), await tenant.submit({ priority: 5 })]
      const live = (limit: number) => store().records.listLive(tenant.accountId, limit)
      assert.deepEqual(ids(await live(10)), [second.job.id, first.job.id, high.id, low.id])
      assert.deepEqual(ids(await live(1)), [second.job.id, high.id])
      assert.equal(await store().records.countLive(tenant.accountId), 4)
      await tenant.succeed(first.lease)
      assert.deepEqual(ids(await live(10)), [second.job.id, high.id, low.id])
      assert.equal(await store().records.countLive(tenant.accountId), 3)
      assert.equal(await store().records.countLive(randomUUID()), 0)
    })
  })

  describe('the history', () => {
    const store = shareStore(opener)

    test('has what ran in the order of its ends: the newest of it, or a range from the oldest', async () => {
      const tenant = await Tenant.create(store())
      const late = await runToEnd(tenant, { endedMs: 30 })
      const early = await runToEnd(tenant, { endedMs: 10 })
      const middle = await runToEnd(tenant, { endedMs: 20 })
      const history = async (maxItems: number, offset: number | null, now = START) =>
        ids(await store().records.listHistory(tenant.accountId, { maxItems, offset }, now))
      assert.deepEqual(await history(10, null), [early, middle, late])
      assert.deepEqual(await history(2, null), [middle, late])
      assert.deepEqual(await history(2, 0), [early, middle])
      assert.deepEqual(await history(2, 2), [late])
      assert.deepEqual(await history(10, null, at(7 * DAY_MS)), [])
    })

    test('leaves out what waits, what runs, what never ran, and what other accounts ran', async () => {
      const [tenant, stranger] = [await Tenant.create(store()), await Tenant.create(store())]
      await runToEnd(stranger, { endedMs: 1 })
      const canceled = await tenant.submit()
      await store().jobs.cancel(tenant.accountId, canceled.id, START)
      const ran = await runToEnd(tenant, { endedMs: 1 })
      await tenant.run()
      await tenant.submit()
      const range = { maxItems: 10, offset: null }
      assert.deepEqual(ids(await store().records.listHistory(tenant.accountId, range, START)), [ran])
    })

    test('forgets single jobs, or all that ended so far; the jobs themselves stay', async () => {
      const [tenant, stranger] = [await Tenant.create(store()), await Tenant.create(store())]
      const { records, jobs } = store()
      const history = async () =>
        ids(await records.listHistory(tenant.accountId, { maxItems: 10, offset: null }, START))
      const [one, two] = [await runToEnd(tenant, { endedMs: 1 }), await runToEnd(tenant, { endedMs: 2 })]
      await records.hideHistory(stranger.accountId, [one], at(2))
      assert.deepEqual(await history(), [one, two])
      await records.hideHistory(tenant.accountId, [one, randomUUID()], at(2))
      await records.hideHistory(tenant.accountId, [one], at(2))
      assert.deepEqual(await history(), [two])
      await records.hideHistory(tenant.accountId, null, at(5))
      assert.deepEqual(await history(), [])
      const after = await runToEnd(tenant, { endedMs: 6 })
      assert.deepEqual(await history(), [after])
      assert.equal((await records.findRecord(tenant.accountId, two, START))?.isHidden, true)
      assert.notEqual(await jobs.find(tenant.accountId, one, START), null)
    })
  })

  describe('a selection of jobs', () => {
    const store = shareStore(opener)
    const select = async (tenant: Tenant, filter: Partial<JobFilter>) => {
      const { jobs, total } = await store().records.selectJobs(tenant.accountId, { ...EVERYTHING, ...filter }, START)
      return { ids: ids(jobs), total }
    }

    test('is sorted by age or by length of the run, and cut into pages of a known whole', async () => {
      const tenant = await Tenant.create(store())
      const long = await runToEnd(tenant, { fields: { createdAt: at(1) }, startedMs: 10, endedMs: 40 })
      const short = await runToEnd(tenant, { fields: { createdAt: at(2) }, startedMs: 10, endedMs: 20 })
      const waiting = (await tenant.submit({ createdAt: at(3) })).id
      assert.deepEqual(await select(tenant, {}), { ids: [waiting, short, long], total: 3 })
      assert.deepEqual((await select(tenant, { order: 'asc' })).ids, [long, short, waiting])
      const byLength = { sortBy: 'execution_duration' } as const
      assert.deepEqual((await select(tenant, byLength)).ids, [long, short, waiting])
      assert.deepEqual((await select(tenant, { ...byLength, order: 'asc' })).ids, [waiting, short, long])
      assert.deepEqual(await select(tenant, { limit: 1, offset: 1 }), { ids: [short], total: 3 })
    })

    test('is filtered by status, by workflow and by what was made', async () => {
      const [tenant, stranger] = [await Tenant.create(store()), await Tenant.create(store())]
      await runToEnd(stranger, { endedMs: 1, outputs: [newOutput()] })
      const picture = await runToEnd(tenant, {
        fields: { createdAt: at(1), submission: newSubmission({ workflowId: 'w' }) },
        endedMs: 1,
        outputs: [newOutput()],
      })
      const mesh = await runToEnd(tenant, {
        fields: { createdAt: at(2) },
        endedMs: 1,
        outputs: [newOutput({ name: 'a.GLB', type: 'file', contentType: 'model/gltf-binary' })],
      })
      const waiting = (await tenant.submit({ createdAt: at(3) })).id
      assert.deepEqual((await select(tenant, { statuses: ['queued', 'failed'] })).ids, [waiting])
      assert.deepEqual(await select(tenant, { workflowId: 'w' }), { ids: [picture], total: 1 })
      assert.deepEqual((await select(tenant, { workflowId: 'other' })).ids, [])
      assert.deepEqual((await select(tenant, { outputType: 'image' })).ids, [picture])
      assert.deepEqual((await select(tenant, { outputType: '3d' })).ids, [mesh])
      assert.deepEqual((await select(tenant, { outputType: 'video' })).ids, [])
      await store().records.hideHistory(tenant.accountId, [picture], START)
      assert.deepEqual(await select(tenant, {}), { ids: [waiting, mesh], total: 2 })
    })
  })

  describe('numbers of prompts', () => {
    const store = shareStore(opener)

    test("begin with 0 and rise by one, each account's own", async () => {
      const [one, other] = [randomUUID(), randomUUID()]
      const numbers: number[] = []
      for (let count = 0; count < 5; count++) numbers.push(await store().records.nextPromptNumber(one))
      assert.deepEqual(numbers, [0, 1, 2, 3, 4])
      assert.equal(await store().records.nextPromptNumber(other), 0)
    })

    test('are each given out once, however many ask at the same time', async () => {
      const accountId = randomUUID()
      const all = await Promise.all(Array.from({ length: 250 }, () => store().records.nextPromptNumber(accountId)))
      assert.deepEqual(
        all.toSorted((a, b) => a - b),
        Array.from({ length: 250 }, (_, index) => index),
      )
      assert.equal(await store().records.nextPromptNumber(accountId), 250)
    })
  })
}
