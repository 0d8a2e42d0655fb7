/** How every store keeps links to the pages of endpoints. */
import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { DEFAULT_SETTINGS } from '../../../src/domain/endpoints/endpoint.ts'
import { type NewShare, scopeOf, toRunLimits } from '../../../src/domain/endpoints/shares/share.ts'
import { at, START, type StoreOpener, shareStore, Tenant, type WholeStoreUnderTest } from '../store-under-test.ts'

const LIMITS = { runs: 5, runsPerDay: null, spendMicros: 2_500_000, inFlight: 2 }

export function testShareStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('links to pages of endpoints', () => {
    const store = shareStore(opener)
    const shares = () => store().shares
    const digestOf = (id: string) => new Uint8Array(createHash('sha256').update(id).digest())

    async function newEndpoint(name = 'poster') {
      const tenant = await Tenant.create(store())
      const { accountId } = tenant
      const published = await store().endpoints.publish({
        ...{ accountId, name, texts: { settings: DEFAULT_SETTINGS }, revision: null },
        version: {
          ...{ hash: randomUUID(), note: '', createdAt: START, createdBy: null, graph: '{}', inputs: [], outputs: [] },
          required: { classes: [], weights: [] },
        },
        limit: 10,
      })
      assert.equal(published.outcome, 'published')
      const newShare = (fields: Partial<NewShare> = {}): NewShare => {
        const id = fields.id ?? randomUUID()
        return {
          ...{ id, accountId, name, version: null, note: 'for the blog', limits: LIMITS, referrers: ['example.com'] },
          ...{ createdAt: START, expiresAt: at(60_000), revokedAt: null, createdBy: 'key', digest: digestOf(id) },
          ...fields,
        }
      }
      return { tenant, key: { accountId, name }, newShare }
    }
    const outcomeOf = async (share: NewShare, limit = 100) => (await shares().create(share, limit)).outcome

    test('a link is found by its digest as it was made, and listed without it', async () => {
      const { key, newShare } = await newEndpoint()
      const made = newShare({ version: 'stable' })
      assert.equal(await outcomeOf(made), 'created')
      const { digest, ...told } = made
      assert.deepEqual(await shares().findByDigest(digest), told)
      assert.equal(await shares().findByDigest(digestOf('another')), null)
      assert.deepEqual(await shares().list(key), [told])
      assert.deepEqual(await shares().list({ ...key, accountId: randomUUID() }), [])
    })

    test('one that is revoked stays, says since when, and only its own endpoint can revoke it', async () => {
      const { key, newShare } = await newEndpoint()
      const made = newShare()
      await shares().create(made, 100)
      assert.equal(await shares().revoke({ ...key, accountId: randomUUID() }, made.id, at(1)), null)
      assert.equal(await shares().revoke({ ...key, name: 'other' }, made.id, at(1)), null)
      assert.deepEqual((await shares().revoke(key, made.id, at(1)))?.revokedAt, at(1))
      assert.deepEqual((await shares().revoke(key, made.id, at(2)))?.revokedAt, at(1))
      assert.deepEqual((await shares().findByDigest(made.digest))?.revokedAt, at(1))
    })

    test('no more work at a time than may be, however many are made at once; of the ended ones as many are kept', async () => {
      const { key, newShare } = await newEndpoint()
      const outcomes = await Promise.all(Array.from({ length: 8 }, () => outcomeOf(newShare(), 3)))
      assert.deepEqual(outcomes.sort(), [
        ...Array.from({ length: 3 }, () => 'created'),
        ...Array.from({ length: 5 }, () => 'too_many'),
      ])
      for (let round = 1; round <= 3; round++) {
        const createdAt = at(60_000 * round)
        const again = () => newShare({ createdAt, expiresAt: at(60_000 * (round + 1)) })
        assert.deepEqual(await Promise.all([again(), again(), again()].map((each) => outcomeOf(each, 3))), [
          ...['created', 'created', 'created'],
        ])
      }
      const kept = await shares().list(key)
      assert.ok(kept.length <= 8, `${kept.length} are kept`)
      assert.deepEqual(kept[0].createdAt, at(180_000))
    })

    test('links go with their endpoint, and with what was counted for them; none can be made of one that is gone', async () => {
      const { tenant, key, newShare } = await newEndpoint()
      const made = newShare()
      await shares().create(made, 100)
      const within = [{ scope: scopeOf(made), name: 'this link', limits: toRunLimits(LIMITS) }]
      assert.equal((await store().jobs.submit(tenant.newJob({ within }), null)).outcome, 'queued')
      assert.equal((await store().runLimits.findUse(key.accountId, [scopeOf(made)])).size, 1)
      assert.equal(await store().endpoints.remove(key, at(1)), true)
      assert.equal(await shares().findByDigest(made.digest), null)
      assert.equal((await store().runLimits.findUse(key.accountId, [scopeOf(made)])).size, 0)
      assert.equal(await outcomeOf(newShare()), 'no_endpoint')
    })

    test('what is made or revoked leaves an audit line, and what was refused says so', async () => {
      const { key, newShare } = await newEndpoint()
      const made = newShare()
      const entry = { actor: 'key k1', subject: made.id, at: START, details: { endpoint: key.name } }
      await store()
        .audited({ ...entry, action: 'share.create' })
        .shares.create(made, 100)
      await store()
        .audited({ ...entry, action: 'share.create' })
        .shares.create(newShare(), 1)
      await store()
        .audited({ ...entry, action: 'share.revoke' })
        .shares.revoke(key, made.id, at(1))
      await store()
        .audited({ ...entry, action: 'share.revoke' })
        .shares.revoke(key, randomUUID(), at(1))
      const lines = await store().audit.list({ limit: 10, before: null, subject: made.id })
      assert.deepEqual(
        lines.map(({ action, outcome }) => `${action} ${outcome}`),
        ['share.revoke refused', 'share.revoke done', 'share.create too_many', 'share.create created'],
      )
    })
  })
}
