import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { newUuidV4 } from '../../../lib/ids.ts'
import { silentLog } from '../../../lib/log.ts'
import { openFsBlobs } from '../../../src/adapters/blobs/fs/fs-blobs.ts'
import { openSqliteStore } from '../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { type BlobStore, createStoreBlob } from '../../../src/domain/assets/blob-store.ts'
import { createCollect, createSweepOrphans, GRACE_MS } from '../../../src/domain/assets/collect-assets.ts'
import { createUploadAsset } from '../../../src/domain/assets/create/upload-asset.ts'
import { createUploadPolicy } from '../../../src/domain/assets/create/upload-policy.ts'
import { createStorageQuota } from '../../../src/domain/assets/storage-quota.ts'
import { createModelPlacement } from '../../../src/domain/assets/weights/model-placement.ts'
import type { HeldClaims } from '../../../src/domain/workers/held-claims.ts'
import { createOutputReceipts } from '../../../src/domain/workers/output-receipts.ts'
import { createWorkerFiles } from '../../../src/domain/workers/worker-files.ts'
import type { WorkerIdentity } from '../../../src/domain/workers/worker-keys.ts'
import { inChunks, listAll, patterned, put } from '../../contracts/assets/blob-store.ts'

const UNLIMITED = { maxBytes: Number.MAX_SAFE_INTEGER }

async function openParts() {
  const directory = await mkdtemp(join(tmpdir(), 'atelier-collect-'))
  const store = await openSqliteStore({ directory })
  const blobs = await openFsBlobs({ directory: join(directory, 'blobs'), blake3: await openBlake3(), log: silentLog })
  await store.accounts.put({ id: 'local', maxRunning: 1, maxQueued: 1 })
  const time = { now: Date.parse('2026-01-01T00:00:00.000Z') }
  const clock = { now: () => new Date(time.now) }
  const shared = { assets: store.assets, blobs, clock, log: silentLog }
  const placement = createModelPlacement({ modelFiles: null, blobs })
  const quota = createStorageQuota({ uploads: { openBytes: async () => 0 }, ...shared, limitOf: () => null })
  const uploads = createUploadPolicy({ ...shared, ...UNLIMITED, quota, newId: newUuidV4, retentionMs: null })
  const uploadAsset = createUploadAsset({ ...shared, keys: store.keys, uploads, placement })
  return {
    ...shared,
    time,
    collect: createCollect(shared),
    sweepOrphans: createSweepOrphans(shared),
    storeBlob: createStoreBlob(shared),
    upload: async (bytes: Uint8Array, filePath = 'a.bin', expiresInSeconds: number | null = null) => {
      const fields = { filePath, contentType: 'text/plain', expectedHash: null, tags: [], expiresInSeconds }
      const source = inChunks(bytes, 1000)
      return (await uploadAsset({ accountId: 'local', source, fields, idempotencyKey: null })).asset
    },
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      await rm(directory, { recursive: true })
    },
  }
}

let parts: Awaited<ReturnType<typeof openParts>>
before(async () => {
  parts = await openParts()
})
after(() => parts[Symbol.asyncDispose]())

test('bytes go once nothing has referenced them for the grace period, and not before', async () => {
  const { assets, blobs, collect, time, clock } = parts
  const asset = await parts.upload(patterned(100, 1))
  time.now += 10 * GRACE_MS
  assert.equal((await collect()).removedBlobs, 0)
  assert.equal(await assets.remove('local', asset.id, clock.now()), 'removed')
  time.now += GRACE_MS - 1000
  assert.equal((await collect()).removedBlobs, 0)
  assert.ok(await blobs.stat(asset.hash))
  time.now += 2000
  assert.equal((await collect()).removedBlobs, 1)
  assert.equal(await blobs.stat(asset.hash), null)
})

test('bytes that another record uses stay', async () => {
  const { assets, blobs, collect, time, clock } = parts
  const [one, two] = [await parts.upload(patterned(100, 2), 'one'), await parts.upload(patterned(100, 2), 'two')]
  assert.equal(one.hash, two.hash)
  await assets.remove('local', one.id, clock.now())
  time.now += 2 * GRACE_MS
  await collect()
  assert.ok(await blobs.stat(two.hash))
})

test('a record past its expiry is removed, and its bytes after it', async () => {
  const { assets, blobs, collect, time, clock } = parts
  const asset = await parts.upload(patterned(100, 3), 'short', 60)
  time.now += 61_000
  assert.equal((await collect()).expiredAssets, 1)
  assert.equal(await assets.find('local', asset.id, clock.now()), null)
  time.now += 2 * GRACE_MS
  await collect()
  assert.equal(await blobs.stat(asset.hash), null)
})

test('bytes that were stored and never got a record go after the grace period', async () => {
  const { blobs, collect, storeBlob, time } = parts
  const { hash, sizeBytes } = await storeBlob(inChunks(patterned(100, 4), 10), UNLIMITED)
  assert.equal(sizeBytes, 100)
  await collect()
  assert.ok(await blobs.stat(hash))
  time.now += 2 * GRACE_MS
  await collect()
  assert.equal(await blobs.stat(hash), null)
})

test('bytes that come again while they are being collected are there for their new record', async () => {
  const { assets, blobs, collect, time, clock } = parts
  for (let round = 0; round < 20; round++) {
    const asset = await parts.upload(patterned(100, 5), 'again')
    await assets.remove('local', asset.id, clock.now())
    time.now += 2 * GRACE_MS
    const [, minted] = await Promise.all([collect(), parts.upload(patterned(100, 5), 'again'), collect()])
    assert.ok(await blobs.stat(minted.hash), `round ${round}`)
    await assets.remove('local', minted.id, clock.now())
  }
})

test('bytes that cannot be removed do not keep the others, and the next sweep takes them', async () => {
  const { assets, blobs, clock, time, storeBlob, sweepOrphans } = parts
  const hashes: string[] = []
  for (const seed of [6, 7, 8]) hashes.push((await storeBlob(inChunks(patterned(50, seed), 50), UNLIMITED)).hash)
  time.now += 2 * GRACE_MS
  const stubborn = hashes[1] ?? ''
  const remove: BlobStore['remove'] = (hash, isKnown) =>
    hash === stubborn ? Promise.reject(new Error('EBUSY')) : blobs.remove(hash, isKnown)
  const errors: string[] = []
  const log = { ...silentLog, error: (_fields: object, message: string) => void errors.push(message) }
  await createCollect({ assets, blobs: { remove }, clock, log })()
  assert.equal(errors.length, 1)
  for (const hash of hashes) assert.equal((await blobs.stat(hash)) === null, hash !== stubborn)
  assert.equal(await sweepOrphans(), 1)
  assert.equal(await blobs.stat(stubborn), null)
})

test('a sweep removes bytes that no record knows and leaves announced and referenced ones', async () => {
  const { blobs, storeBlob, sweepOrphans } = parts
  const orphan = await put(blobs, patterned(100, 9))
  const announced = (await storeBlob(inChunks(patterned(100, 10), 100), UNLIMITED)).hash
  const referenced = (await parts.upload(patterned(100, 11))).hash
  assert.equal(await sweepOrphans(), 1)
  const left = await listAll(blobs)
  assert.ok(!left.includes(orphan) && left.includes(announced) && left.includes(referenced))
  assert.equal(await sweepOrphans(), 0)
})

test('a store that cannot announce keeps no bytes', async () => {
  const { blobs, clock } = parts
  const before = await listAll(blobs)
  const announceBlob = () => Promise.reject(new Error('the store is gone'))
  const storeBlob = createStoreBlob({ assets: { announceBlob }, blobs, clock })
  for (const size of [100, 200_000])
    await assert.rejects(storeBlob(inChunks(patterned(size, 12), 999), UNLIMITED), /gone/)
  assert.deepEqual(await listAll(blobs), before)
})

test('pieces of a joined worker are there when the last of them comes, hours later', async () => {
  const { assets, blobs, collect, time, clock } = parts
  const held = { learn() {}, forget() {}, mustFind: async () => ({ job: { accountId: 'local' }, inputs: [] }) }
  const files = createWorkerFiles({
    ...{ assets, blobs, clock, storageLeft: async () => Number.MAX_SAFE_INTEGER },
    hasBlob: async () => false,
    outputCheck: null,
    held: held as unknown as HeldClaims,
    receipts: createOutputReceipts([{ id: 'k', secret: Buffer.alloc(32, 1) }]),
  })
  const worker = { keyId: 'k' } as WorkerIdentity
  const lease = { jobId: 'j', leaseId: 'l' }
  const whole = patterned(8 * 1024 * 1024 + 1000, 77)
  const blake3 = await openBlake3()
  const send = (bytes: Buffer) => {
    const upload = { hash: blake3.hash(bytes), source: inChunks(bytes, 65_536), signal: new AbortController().signal }
    return files.store(worker, lease, upload)
  }
  const first = await send(whole.subarray(0, 8 * 1024 * 1024))
  time.now += 5 * GRACE_MS
  await collect()
  const last = await send(whole.subarray(8 * 1024 * 1024))
  const joined = { hash: blake3.hash(whole), sizeBytes: whole.length }
  const asked = { whole: joined, pieces: [first, last], signal: new AbortController().signal }
  assert.equal((await files.join(worker, lease, asked)).hash, joined.hash)
  time.now += 20 * GRACE_MS
  await collect()
  assert.equal(await blobs.stat(first.hash), null, 'and then they go')
})
