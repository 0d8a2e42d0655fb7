/** How every store of resumable uploads behaves. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { ResumableUpload, UploadLease } from '../../../src/domain/assets/resumable/upload-store.ts'
import { at, type StoreOpener, shareStore, Tenant, type WholeStoreUnderTest, withStore } from '../store-under-test.ts'

const MANY = { maxCount: 10, maxBytes: null }

export function newUpload(
  { accountId }: Pick<Tenant, 'accountId'>,
  fields: Partial<ResumableUpload> = {},
): ResumableUpload {
  const said = { filePath: 'ü.bin', contentType: 'a/b', expectedHash: null, tags: ['t'], expiresInSeconds: 60 }
  return {
    ...{ id: randomUUID(), accountId, lengthBytes: 2 ** 40, fields: said, metadata: 'filename YQ==', place: 'here' },
    ...{ hash: null, assetId: null, createdAt: at(0), expiresAt: at(1000), ...fields },
  }
}

const lease = (fromMs: number, leaseId: string = randomUUID()): UploadLease => ({
  ...{ leaseId, now: at(fromMs), until: at(fromMs + 100) },
})

export function testUploadStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('uploads that can be continued', () => {
    const store = shareStore(opener)

    test('come back as they were written, and to their account only', async () => {
      const [tenant, other] = [await Tenant.create(store()), await Tenant.create(store())]
      const upload = newUpload(tenant)
      assert.equal(await store().uploads.create(upload, MANY), 'created')
      assert.deepEqual(await store().uploads.find(tenant.accountId, upload.id), upload)
      assert.equal(await store().uploads.find(other.accountId, upload.id), null)
    })

    test('are bounded in number and in bytes, also when many are begun at once, until they end', async () => {
      const { uploads } = store()
      const tenant = await Tenant.create(store())
      const bounds = { maxCount: 4, maxBytes: 30 }
      const begun = Array.from({ length: 6 }, () => newUpload(tenant, { lengthBytes: 10 }))
      const outcomes = await Promise.all(begun.map((upload) => uploads.create(upload, bounds)))
      assert.deepEqual(outcomes.toSorted(), ['created', 'created', 'created', 'no_room', 'no_room', 'no_room'])
      assert.equal(await uploads.openBytes(tenant.accountId), 30)
      assert.equal(await uploads.create(newUpload(tenant, { lengthBytes: 1 }), { ...bounds, maxCount: 3 }), 'too_many')
      const { id } = begun[outcomes.indexOf('created')] ?? assert.fail()
      const held = lease(0)
      await uploads.hold(id, { ...held, isAlone: false })
      await uploads.release(id, held.leaseId, { assetId: 'asset' })
      assert.equal(await uploads.openBytes(tenant.accountId), 20)
      assert.equal((await uploads.find(tenant.accountId, id))?.assetId, 'asset')
    })

    test('belong to one writer at a time', async () => {
      const { uploads } = store()
      const tenant = await Tenant.create(store())
      const upload = newUpload(tenant)
      await uploads.create(upload, MANY)
      const takes = [lease(0), lease(0), lease(0)]
      const held = await Promise.all(takes.map((each) => uploads.hold(upload.id, { ...each, isAlone: false })))
      assert.equal(held.filter((each) => each !== null).length, 1)
      const first = takes[held.findIndex((each) => each !== null)] ?? assert.fail()
      assert.equal(await uploads.renew(upload.id, { ...first, until: at(150) }), true)
      assert.equal(await uploads.hold(upload.id, { ...lease(120), isAlone: false }), null)
      const second = lease(150)
      assert.deepEqual(await uploads.hold(upload.id, { ...second, isAlone: false }), upload)
      // Whoever lost it can do nothing any more.
      assert.equal(await uploads.renew(upload.id, first), false)
      assert.equal(await uploads.noteHash(upload.id, first.leaseId, 'wrong'), false)
      await uploads.release(upload.id, first.leaseId, { assetId: 'wrong' })
      await uploads.remove(upload.id, first.leaseId)
      assert.equal(await uploads.noteHash(upload.id, second.leaseId, 'right'), true)
      assert.deepEqual(await uploads.find(tenant.accountId, upload.id), { ...upload, hash: 'right' })
      // A process that is alone knows that the lease is that of a dead one.
      const third = lease(151)
      assert.notEqual(await uploads.hold(upload.id, { ...third, isAlone: true }), null)
      await uploads.remove(upload.id, third.leaseId)
      assert.equal(await uploads.find(tenant.accountId, upload.id), null)
    })

    test('past their life are given to be removed, but for those that are written to', () =>
      withStore(opener, async (own) => {
        const { uploads } = own
        const tenant = await Tenant.create(own)
        const [old, busy, young] = [newUpload(tenant), newUpload(tenant), newUpload(tenant, { expiresAt: at(5000) })]
        for (const upload of [old, busy, young]) await uploads.create(upload, MANY)
        await uploads.hold(busy.id, { ...lease(950), isAlone: false })
        const swept = lease(1000)
        assert.deepEqual(await uploads.holdExpired(swept, 10), [old])
        assert.deepEqual(await uploads.holdExpired(lease(1001), 10), [])
        await uploads.remove(old.id, swept.leaseId)
        assert.equal(await uploads.find(tenant.accountId, old.id), null)
        assert.deepEqual(await uploads.holdExpired(lease(2000), 10), [busy])
      }))
  })
}
