/** The blob store on a bucket: the contract, and what only it can show. Storage is a fake that checks signatures and checksums. */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { diskFileOps } from '../../../src/adapters/blobs/fs/file-ops.ts'
import { inChunks, patterned, put, readAll, refusedWith, testBlobStore } from '../../contracts/assets/blob-store.ts'
import { testPartialBlobs } from '../../contracts/assets/partial-blobs.ts'
import { startFakeS3 } from '../../support/s3/fake-s3.ts'
import { openBlobsOn } from '../../support/s3/open-s3-blobs.ts'
import { MIB, toPlace, useBuckets } from './s3-rig.ts'

const UNLIMITED = { maxBytes: Number.MAX_SAFE_INTEGER }

describe('bytes in a bucket', () => {
  const { open, index } = useBuckets()

  testBlobStore('s3', open)
  testPartialBlobs('s3', async () => {
    await using opening = new AsyncDisposableStack()
    const opened = opening.use(await open())
    const other = opening.use(await openBlobsOn(toPlace(opened.fake), index()))
    const all = opening.move()
    const pair = { one: opened.blobs, other: other.blobs, hash: opened.hash }
    return { ...pair, [Symbol.asyncDispose]: () => all.disposeAsync() }
  })

  test('pieces larger than a part come back as they went in, whatever their size', async () => {
    await using store = await open()
    for (const size of [8 * MIB, 8 * MIB + 1, 16 * MIB, 21 * MIB + 12_345]) {
      const bytes = patterned(size)
      const stored = await put(store.blobs, bytes, 1_000_003)
      assert.equal(stored, store.hash(bytes))
      assert.ok(bytes.equals(await readAll(await store.blobs.open(stored))))
      const middle = { start: 8 * MIB - 5, end: Math.min(size - 1, 8 * MIB + 5) }
      const slice = bytes.subarray(middle.start, middle.end + 1)
      assert.ok(slice.equals(await readAll(await store.blobs.open(stored, middle))))
    }
    assert.equal(store.fake.uploads.size, 0)
  })

  test('bytes that are there already are not sent again', async () => {
    await using store = await open()
    await put(store.blobs, patterned(1000))
    store.fake.asked.length = 0
    await put(store.blobs, patterned(1000))
    assert.deepEqual(store.fake.asked, [])
    const large = patterned(9 * MIB)
    const stored = await put(store.blobs, large)
    await put(store.blobs, large)
    // Its hash was known only when it had been sent; the second object went again.
    assert.equal(store.fake.objects.size, 2)
    assert.ok(large.equals(await readAll(await store.blobs.open(stored))))
  })

  test('whatever ends a receive leaves nothing in the bucket and nothing on the disk', async () => {
    await using store = await open({ partMemoryBytes: 9 * MIB })
    async function* breaks() {
      yield patterned(30 * MIB)
      throw new Error('gone')
    }
    await assert.rejects(store.blobs.receive(breaks(), UNLIMITED), /gone/)
    await assert.rejects(store.blobs.receive(inChunks(patterned(20 * MIB), 100_000), { maxBytes: 19 * MIB }))
    for (const size of [1000, 20 * MIB]) {
      const discarded = await store.blobs.receive(inChunks(patterned(size), 100_000), UNLIMITED)
      await discarded.discard()
    }
    assert.equal(store.fake.objects.size, 0)
    assert.equal(store.fake.uploads.size, 0)
    assert.deepEqual(await readdir(join(store.directory, 'this', 'tmp')), [])
  })

  test('parts that find no room in memory go through files, and the bytes are the same', async () => {
    await using store = await open({ partMemoryBytes: 100_000 })
    const pieces = [1, 2, 3, 4].map((seed) => patterned(9 * MIB + seed, seed))
    const small = patterned(200_000, 9)
    const stored = await Promise.all([...pieces, small].map((bytes) => put(store.blobs, bytes, 300_000)))
    for (const [index, bytes] of [...pieces, small].entries())
      assert.ok(bytes.equals(await readAll(await store.blobs.open(stored[index]))))
    assert.deepEqual(await readdir(join(store.directory, 'this', 'tmp')), [])
  })

  test('a full storage is refused as full', async () => {
    await using store = await open()
    store.fake.fail('put', { kind: 'status', status: 507, code: 'XMinioStorageFull' })
    await assert.rejects(put(store.blobs, patterned(10)), refusedWith('storage_full'))
    store.fake.fail('put_part', { kind: 'status', status: 400, code: 'QuotaExceeded' }, 9)
    await assert.rejects(put(store.blobs, patterned(20 * MIB)), refusedWith('storage_full'))
  })

  test('a disk without room is refused as full, wherever it is needed, and leaves nothing behind', async () => {
    const noRoom = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
    const disk = { ...diskFileOps, write: () => Promise.reject(noRoom) }
    await using store = await open({ disk, partMemoryBytes: 100_000 })
    await assert.rejects(put(store.blobs, patterned(200_000)), refusedWith('storage_full'))
    await assert.rejects(put(store.blobs, patterned(20 * MIB)), refusedWith('storage_full'))
    const stored = await put(store.blobs, patterned(1000))
    await assert.rejects(store.blobs.borrow?.(stored) ?? assert.fail(), refusedWith('storage_full'))
    assert.equal(store.fake.objects.size, 1)
    assert.equal(store.fake.uploads.size, 0)
    assert.deepEqual(await readdir(join(store.directory, 'this', 'tmp')), [])
  })

  test('keys that are refused make the storage unavailable, and no message shows them', async () => {
    await using store = await open()
    await using fake = await startFakeS3()
    await using other = await openBlobsOn({ ...toPlace(fake), keys: 'AKIDEXAMPLE:not-the-secret' }, store.index)
    await assert.rejects(put(other.blobs, patterned(10)), (error: Error) => {
      assert.ok(!`${error.stack} ${error.cause}`.includes('not-the-secret'))
      return refusedWith('store_unavailable')(error)
    })
  })

  test('an address that was given away works for GET and HEAD as it was signed, and for nothing else', async () => {
    await using store = await open()
    const stored = await put(store.blobs, patterned(1000))
    const pinned = { contentType: 'image/png', disposition: 'inline; filename="a b+c (1).png"' }
    const sign = (method: 'GET' | 'HEAD') => store.blobs.signDirect?.(stored, { method, ...pinned }) ?? assert.fail()
    const get = await sign('GET')
    const answer = await fetch(get)
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('content-type'), 'image/png')
    assert.equal(answer.headers.get('content-disposition'), pinned.disposition)
    assert.ok(patterned(1000).equals(Buffer.from(await answer.arrayBuffer())))
    const ranged = await fetch(get, { headers: { range: 'bytes=10-19' } })
    assert.deepEqual([ranged.status, (await ranged.arrayBuffer()).byteLength], [206, 10])
    assert.equal((await fetch(await sign('HEAD'), { method: 'HEAD' })).headers.get('content-length'), '1000')
    assert.equal((await fetch(get, { method: 'DELETE' })).status, 403)
    assert.equal((await fetch(get.replace('image%2Fpng', 'text%2Fhtml'))).status, 403)
    store.fake.skewMs = 301_000
    assert.equal((await fetch(get)).status, 403)
  })
})
