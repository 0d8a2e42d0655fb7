/** What three processes let in at the same moment: keys, ids, queues, credit and spend are exact over all of them. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { at, DAY_MS, hashOf, keyClaim, START, Tenant } from '../../contracts/store-under-test.ts'
import { askAll, countBy, shareCluster } from '../../support/cluster/share-cluster.ts'

const PRICE = { perSecondMicros: 100, minimumMicros: 50, holdMicros: 1000 }

describe('three processes on one database let in', () => {
  const cluster = shareCluster()

  test('one job for a key, whoever is asked, and again one when the key has expired', async () => {
    const tenant = await Tenant.create(cluster().stores[0])
    for (const claimedAt of [START, at(DAY_MS)]) {
      const rounds = Array.from({ length: 12 }, async (_, key) => {
        const outcomes = await askAll(cluster(), 9, ({ jobs }) =>
          jobs.submit(tenant.newJob(), keyClaim(`key ${key}`, claimedAt)),
        )
        const queued = outcomes.filter(({ outcome }) => outcome === 'queued')
        assert.equal(queued.length, 1)
        const [{ job }] = queued as { job: { id: string } }[]
        for (const outcome of outcomes) {
          if (outcome.outcome === 'queued') continue
          assert.deepEqual(outcome, { outcome: 'key_reused', holder: { jobId: job.id, assetId: null } })
        }
      })
      await Promise.all(rounds)
    }
    assert.deepEqual(await tenant.use(), { running: 0, queued: 24 })
  })

  test('a job or an upload for a key that both use, never both', async () => {
    const tenant = await Tenant.create(cluster().stores[0])
    const { accountId } = tenant
    const newAsset = () => ({
      ...{
        id: randomUUID(),
        accountId,
        hash: hashOf(randomUUID()),
        sizeBytes: 3,
        contentType: 'image/png',
        jobId: null,
      },
      ...{ filePath: null, subfolder: null, tags: [], createdAt: START, expiresAt: null },
    })
    const outcomes = await askAll(cluster(), 12, async ({ jobs, assets }, index) => {
      if (index % 2 === 0) return (await jobs.submit(tenant.newJob(), keyClaim('both'))).outcome
      return (await assets.mint({ asset: newAsset(), keyClaim: keyClaim('both'), mustOwnHash: false })).outcome
    })
    assert.equal(outcomes.filter((outcome) => outcome === 'key_reused').length, 11, outcomes.join())
  })

  test('an id that a caller chose once', async () => {
    const tenant = await Tenant.create(cluster().stores[0])
    const job = tenant.newJob({ hasChosenId: true })
    const outcomes = await askAll(cluster(), 9, ({ jobs }) => jobs.submit(job, null))
    assert.deepEqual(
      countBy(outcomes, ({ outcome }) => outcome),
      { queued: 1, id_taken: 8 },
    )
  })

  test('as many waiting jobs as the account may have', async () => {
    const tenant = await Tenant.create(cluster().stores[0], { maxQueued: 10 })
    const outcomes = await askAll(cluster(), 60, ({ jobs }) => jobs.submit(tenant.newJob(), null))
    assert.deepEqual(
      countBy(outcomes, ({ outcome }) => outcome),
      { queued: 10, queue_full: 50 },
    )
  })

  test('as many jobs as the account can pay, down to its floor', async () => {
    const tenant = await Tenant.metered(cluster().stores[0], { micros: 7500, floor: -500 })
    const outcomes = await askAll(cluster(), 45, ({ jobs }) => jobs.submit(tenant.newJob({ price: PRICE }), null))
    assert.deepEqual(
      countBy(outcomes, ({ outcome }) => outcome),
      { queued: 8, insufficient_credits: 37 },
    )
    assert.deepEqual(await cluster().stores[1].ledger.balance(tenant.accountId), {
      ...{ available: -500, held: 8000, floor: -500 },
    })
  })
})
