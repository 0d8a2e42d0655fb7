/** How every store keeps batches: one transaction, the limits of single submits, one key, and a view of the jobs. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { NewBatch } from '../../src/domain/jobs/batches/batch-store.ts'
import type { NewJob } from '../../src/domain/jobs/job-store.ts'
import {
  at,
  DAY_MS,
  keyClaim,
  newJobId,
  START,
  type StoreOpener,
  shareStore,
  Tenant,
  type WholeStoreUnderTest,
} from './store-under-test.ts'

const PRICE = { perSecondMicros: 1, minimumMicros: 1, holdMicros: 100 }
const WRONG = { index: 1, refusal: 'invalid_workflow', message: 'no', details: { a: 1 } } as const

function newBatch(tenant: Tenant, jobs: readonly Partial<NewJob>[], fields: Partial<NewBatch> = {}): NewBatch {
  return {
    ...{ id: newJobId(), isWhole: true, digest: 'd', total: jobs.length, refused: [] },
    jobs: jobs.map((job, index) => ({ index, job: tenant.newJob(job) })),
    ...fields,
  }
}

const idsOf = ({ jobs }: NewBatch) => jobs.map(({ job }) => job.id)

export function testBatchStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('batches', () => {
    const store = shareStore(opener)
    const find = ({ accountId }: Tenant, { id }: Pick<NewBatch, 'id'>, now = START) =>
      store().batches.find(accountId, id, now)

    test('its jobs are queued in their order, like those of single submits, and the batch reads back', async () => {
      const tenant = await Tenant.create(store())
      const recipe = { key: 'k', title: 'Postcard', terms: '\nc:A\n' }
      const batch = newBatch(tenant, [{ metadata: { n: '1' }, recipe }, { priority: 3, recipe }, { notes: '{}' }], {
        isWhole: false,
      })
      const [first, second, third] = batch.jobs.map(({ job }) => job)
      const spread = {
        ...batch,
        total: 4,
        jobs: batch.jobs.map((each, index) => ({ ...each, index: index && index + 1 })),
      }
      const outcome = await store().batches.submit({ ...spread, refused: [WRONG] }, null)
      assert.deepEqual(outcome, { outcome: 'queued', accepted: 3, limitedBy: null })
      assert.deepEqual(await tenant.use(), { running: 0, queued: 3 })
      const stored = await find(tenant, batch)
      assert.deepEqual(stored?.jobIds, [first?.id, null, second?.id, third?.id])
      assert.deepEqual([stored?.refused, stored?.limitedBy, stored?.isWhole], [[WRONG], null, false])
      assert.deepEqual(
        [...(stored?.states.values() ?? [])].map(({ status }) => status),
        ['queued', 'queued', 'queued'],
      )
      const claimed = [await tenant.claim(), await tenant.claim(), await tenant.claim()]
      assert.deepEqual(
        claimed.map((claim) => claim?.job.id),
        [second?.id, first?.id, third?.id],
      )
      assert.equal(claimed[2]?.notes, '{}')
    })

    test('a job leads to its batch, and one that came alone at the same time to none', async () => {
      const tenant = await Tenant.create(store())
      const [batch, other] = [newBatch(tenant, [{}, {}]), newBatch(tenant, [{}])]
      await store().batches.submit(batch, null)
      await store().batches.submit(other, null)
      const alone = await tenant.submit()
      const batchOf = async (id: string) => (await store().summaries.findDetails(tenant.accountId, id, START))?.batchId
      const first = (await tenant.claim())?.job.id ?? ''
      assert.ok(idsOf(batch).includes(first))
      for (const id of idsOf(batch)) assert.equal(await batchOf(id), batch.id)
      assert.equal(await batchOf(idsOf(other)[0] ?? ''), other.id)
      assert.equal(await batchOf(alone.id), null)
    })

    test('it tells how each job stands', async () => {
      const tenant = await Tenant.create(store())
      const batch = newBatch(tenant, [{}, {}, {}])
      await store().batches.submit(batch, null)
      const [one, two, three] = idsOf(batch) as [string, string, string]
      const claim = await tenant.claim()
      const progress = { value: 0.25, nodesDone: 1, nodesTotal: 4, currentNode: null, currentNodeClass: null }
      const lease = { jobId: one, leaseId: claim?.leaseId ?? '' }
      await store().jobs.commit(lease, { progress: { ...progress, step: null, steps: null, message: null } })
      await store().jobs.cancel(tenant.accountId, three, START)
      const states = (await find(tenant, batch))?.states
      assert.deepEqual(states?.get(one), { status: 'running', progress: 0.25 })
      assert.deepEqual(states?.get(two), { status: 'queued', progress: null })
      assert.deepEqual(states?.get(three), { status: 'canceled', progress: null })
    })

    test('one that must be whole is refused where the queue has not room for all; any other takes what fits', async () => {
      const tenant = await Tenant.create(store(), { maxQueued: 3 })
      await tenant.submit()
      const whole = newBatch(tenant, [{}, {}, {}])
      assert.deepEqual(await store().batches.submit(whole, keyClaim('k')), { outcome: 'queue_full', room: 2 })
      assert.equal(await find(tenant, whole), null)
      assert.equal(await store().keys.findKey(tenant.accountId, 'k', START), null)
      assert.deepEqual(await tenant.use(), { running: 0, queued: 1 })
      const some = { ...newBatch(tenant, [{}, {}, {}]), isWhole: false }
      const outcome = await store().batches.submit(some, keyClaim('k'))
      assert.deepEqual(outcome, { outcome: 'queued', accepted: 2, limitedBy: 'queue_full' })
      const stored = await find(tenant, some)
      assert.deepEqual(stored?.jobIds, [...idsOf(some).slice(0, 2), null])
      assert.equal(stored?.limitedBy, 'queue_full')
      assert.deepEqual(await tenant.use(), { running: 0, queued: 3 })
      const none = { ...newBatch(tenant, [{}]), isWhole: false }
      assert.deepEqual(await store().batches.submit(none, null), { outcome: 'queue_full', room: 0 })
    })

    test('credit is held for each job, and for no more than there is', async () => {
      const tenant = await Tenant.metered(store(), { micros: 250 })
      const jobs = Array.from({ length: 3 }, () => ({ price: PRICE }))
      const refused = await store().batches.submit(newBatch(tenant, jobs), null)
      assert.deepEqual(refused, { outcome: 'insufficient_credits', room: 2 })
      assert.equal((await store().ledger.balance(tenant.accountId))?.held, 0)
      const some = { ...newBatch(tenant, jobs), isWhole: false }
      const outcome = await store().batches.submit(some, null)
      assert.deepEqual(outcome, { outcome: 'queued', accepted: 2, limitedBy: 'insufficient_credits' })
      assert.equal((await store().ledger.balance(tenant.accountId))?.held, 200)
      assert.deepEqual(
        (await store().ledger.holds(tenant.accountId, 10)).map(({ micros }) => micros),
        [100, 100],
      )
    })

    test('a key belongs to one batch, one job or one asset', async () => {
      const tenant = await Tenant.create(store())
      const batch = newBatch(tenant, [{}])
      await store().batches.submit(batch, keyClaim('k'))
      const holder = { jobId: null, assetId: null, batchId: batch.id }
      assert.deepEqual(await store().keys.findKey(tenant.accountId, 'k', START), holder)
      assert.deepEqual(await store().jobs.submit(tenant.newJob(), keyClaim('k')), { outcome: 'key_reused', holder })
      const again = await store().batches.submit(newBatch(tenant, [{}, {}]), keyClaim('k'))
      assert.deepEqual(again, { outcome: 'key_reused', holder })
      const job = await tenant.submit({}, keyClaim('k', at(DAY_MS)))
      assert.deepEqual(await store().keys.findKey(tenant.accountId, 'k', at(DAY_MS)), { jobId: job.id, assetId: null })
    })

    test('of batches that come at once with one key one is accepted, and the queue takes no more than it may', async () => {
      const tenant = await Tenant.create(store(), { maxQueued: 50 })
      const submits = Array.from({ length: 10 }, (_, index) =>
        store().batches.submit(newBatch(tenant, Array(index < 5 ? 20 : 1).fill({})), index < 5 ? null : keyClaim('k')),
      )
      const outcomes = await Promise.all(submits)
      assert.equal(outcomes.filter(({ outcome }) => outcome === 'queued').length, 3)
      assert.equal(outcomes.filter(({ outcome }) => outcome === 'key_reused').length, 4)
      assert.deepEqual(await tenant.use(), { running: 0, queued: 41 })
    })

    test('a list shows the jobs of a batch alone, newest first, with the other filters', async () => {
      const tenant = await Tenant.create(store())
      const other = await Tenant.create(store())
      await tenant.submit()
      const batch = newBatch(tenant, [{ metadata: { n: '1' } }, { metadata: { n: '2' } }, { metadata: { n: '1' } }])
      await store().batches.submit(batch, null)
      await tenant.submit()
      const [one, two, three] = idsOf(batch) as [string, string, string]
      const query = { batchId: batch.id, statuses: null, metadata: {}, limit: 2, after: null, now: START }
      const list = async (more: object, { accountId } = tenant) =>
        (await store().jobs.list(accountId, { ...query, ...more })).map(({ id }) => id)
      assert.deepEqual(await list({}), [three, two, one])
      assert.deepEqual(await list({ after: { createdAt: START, id: two } }), [one])
      assert.deepEqual(await list({ metadata: { n: '1' } }), [three, one])
      await store().jobs.cancel(tenant.accountId, two, START)
      assert.deepEqual(await list({ statuses: ['canceled'] }), [two])
      assert.deepEqual(await list({ pool: 'elsewhere' }), [])
      assert.deepEqual(await list({}, other), [])
      assert.deepEqual(await list({ batchId: newJobId() }), [])
    })

    test('it is nobody else’s, and goes with its retention', async () => {
      const tenant = await Tenant.create(store())
      const other = await Tenant.create(store())
      const batch = newBatch(tenant, [{}])
      await store().batches.submit(batch, null)
      assert.equal(await find(other, batch), null)
      assert.equal(await store().batches.find(tenant.accountId, 'x', START), null)
      assert.equal(await find(tenant, batch, at(7 * DAY_MS)), null)
      assert.equal((await find(tenant, batch, at(7 * DAY_MS - 1)))?.id, batch.id)
      assert.ok((await store().batches.sweep(at(7 * DAY_MS))) >= 1)
      assert.equal(await find(tenant, batch), null)
    })
  })
}
