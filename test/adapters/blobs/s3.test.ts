/** The blob store on a bucket: the contract, and what only it can show. Storage is a fake that checks signatures and checksums. */
import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { diskFileOps } from '../../../src/adapters/blobs/fs/file-ops.ts'
import { openLocalFiles } from '../../../src/adapters/blobs/s3/local-files.ts'
import { inChunks, patterned, put, readAll, refusedWith, testBlobStore } from '../../contracts/assets/blob-store.ts'
import { testPartialBlobs } from '../../contracts/assets/partial-blobs.ts'
import { type FakeS3, startFakeS3 } from '../../support/s3/fake-s3.ts'
import { openBlobsOn, openTestIndex } from '../../support/s3/open-s3-blobs.ts'
import { UNAVAILABLE } from '../../support/s3/s3-faults.ts'

type OpenOptions = NonNullable<Parameters<typeof openBlobsOn>[2]>

const UNLIMITED = { maxBytes: Number.MAX_SAFE_INTEGER }
const MIB = 1024 * 1024
let shared: Awaited<ReturnType<typeof openTestIndex>>

describe('bytes in a bucket', () => {
  before(async () => {
    shared = await openTestIndex()
  })
  after(() => shared[Symbol.asyncDispose]())

  /** A bucket of its own; the index is emptied first. */
  async function open(options: OpenOptions = {}) {
    await using opening = new AsyncDisposableStack()
    for await (const hashes of shared.index.list())
      for (const hash of hashes) await shared.index.remove(hash, { isKnown: async () => false, now: new Date(0) })
    await shared.index.forgetGarbage(await shared.index.garbage(new Date(2 ** 42), 100_000))
    const fake = opening.use(await startFakeS3())
    const opened = opening.use(await openBlobsOn(toPlace(fake), shared.index, options))
    const all = opening.move()
    return { ...opened, fake, index: shared.index, [Symbol.asyncDispose]: () => all.disposeAsync() }
  }

  const toPlace = (fake: FakeS3) => ({ endpoint: fake.url, bucket: 'test-bytes', keys: fake.keys })

  testBlobStore('s3', open)
  testPartialBlobs('s3', async () => {
    await using opening = new AsyncDisposableStack()
    const opened = opening.use(await open())
    const other = opening.use(await openBlobsOn(toPlace(opened.fake), shared.index))
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

  test('a storage that fails for a moment is asked again, at every step', async () => {
    await using store = await open()
    const bytes = patterned(17 * MIB)
    for (const operation of ['begin_upload', 'put_part', 'complete_upload'] as const) {
      store.fake.fail(operation, UNAVAILABLE, 2)
      store.fake.fail(operation, { kind: 'cut' })
    }
    const stored = await put(store.blobs, bytes)
    for (const fault of [
      UNAVAILABLE,
      { kind: 'status', status: 500, code: 'InternalError' },
      { kind: 'cut' },
    ] as const) {
      store.fake.fail('put', fault)
      await put(store.blobs, patterned(1000, Math.random() * 1e6))
      store.fake.fail('get', fault)
      assert.ok(bytes.equals(await readAll(await store.blobs.open(stored))))
    }
  })

  test('bytes that were damaged on their way are refused by the storage and sent again', async () => {
    await using store = await open()
    for (const size of [1000, 10 * MIB]) {
      store.fake.fail(size < MIB ? 'put' : 'put_part', { kind: 'damage' })
      const stored = await put(store.blobs, patterned(size))
      assert.ok(patterned(size).equals(await readAll(await store.blobs.open(stored))))
    }
  })

  test('a completed upload whose answer was lost counts as completed', async () => {
    await using store = await open()
    store.fake.fail('complete_upload', { kind: 'lose_answer' })
    const bytes = patterned(9 * MIB)
    const stored = await put(store.blobs, bytes)
    assert.equal(store.fake.objects.size, 1)
    assert.ok(bytes.equals(await readAll(await store.blobs.open(stored))))
  })

  test('an answer 200 that carries an error is an error', async () => {
    await using store = await open()
    store.fake.fail('complete_upload', { kind: 'status', status: 200, code: 'InternalError' })
    const stored = await put(store.blobs, patterned(9 * MIB))
    assert.deepEqual(await store.blobs.stat(stored), { sizeBytes: 9 * MIB })
    assert.equal(store.fake.objects.size, 1)
  })

  test('a download that breaks goes on where it was', async () => {
    await using store = await open()
    const bytes = patterned(9 * MIB)
    const stored = await put(store.blobs, bytes)
    store.fake.asked.length = 0
    store.fake.fail('get', { kind: 'cut' }, 3)
    assert.ok(bytes.equals(await readAll(await store.blobs.open(stored))))
    assert.deepEqual(store.fake.asked, ['get', 'get', 'get', 'get'])
    store.fake.fail('get', { kind: 'cut' }, 1)
    const part = await readAll(await store.blobs.open(stored, { start: 100, end: 5_000_000 }))
    assert.ok(bytes.subarray(100, 5_000_001).equals(part))
  })

  test('a download may break many times while it gets on', async () => {
    await using store = await open()
    const bytes = patterned(9 * MIB)
    const stored = await put(store.blobs, bytes)
    // Each time half of the rest comes.
    store.fake.fail('get', { kind: 'cut' }, 12)
    assert.ok(bytes.equals(await readAll(await store.blobs.open(stored))))
  })

  test('downloads that break are taken up within the budget that all requests share', async () => {
    await using store = await open({ patience: { firstPauseMs: 1, maxPauseMs: 1, budget: 3 } })
    const stored = await put(store.blobs, patterned(9 * MIB))
    store.fake.fail('get', { kind: 'cut' }, 20)
    store.fake.asked.length = 0
    await assert.rejects(async () => readAll(await store.blobs.open(stored)), refusedWith('store_unavailable'))
    assert.equal(store.fake.asked.length, 4)
  })

  test('a download that falls silent is taken up again', async () => {
    await using store = await open({ silentMs: 100 })
    const stored = await put(store.blobs, patterned(1000))
    const never = Promise.withResolvers<void>()
    store.fake.fail('get', { kind: 'stall', until: never.promise })
    assert.ok(patterned(1000).equals(await readAll(await store.blobs.open(stored))))
    never.resolve()
  })

  test('an answer that is late is asked for a second time, and the faster one is used', async () => {
    await using store = await open({ hedgeAfterMs: 1 })
    const stored = await put(store.blobs, patterned(1000))
    const never = Promise.withResolvers<void>()
    store.fake.fail('get', { kind: 'stall', until: never.promise })
    store.fake.asked.length = 0
    assert.ok(patterned(1000).equals(await readAll(await store.blobs.open(stored))))
    assert.deepEqual(store.fake.asked, ['get', 'get'])
    never.resolve()
  })

  test('bytes that come damaged are read once more while nothing of them was passed on', async () => {
    await using store = await open()
    const stored = await put(store.blobs, patterned(1000))
    store.fake.fail('get', { kind: 'damage' })
    assert.ok(patterned(1000).equals(await readAll(await store.blobs.open(stored))))
    store.fake.fail('get', { kind: 'damage' }, 2)
    await assert.rejects(async () => readAll(await store.blobs.open(stored)), refusedWith('output_unavailable'))
  })

  test('a damaged object breaks the stream before its last byte, and sending the bytes again mends it', async () => {
    await using store = await open()
    const bytes = patterned(300_000)
    const stored = await put(store.blobs, bytes)
    store.fake.fail('get', { kind: 'damage' })
    await assert.rejects(async () => readAll(await store.blobs.open(stored)), refusedWith('output_unavailable'))
    assert.equal(await put(store.blobs, bytes), stored)
    assert.ok(bytes.equals(await readAll(await store.blobs.open(stored))))
    assert.equal((await store.index.garbage(new Date(2 ** 42), 10)).length, 1, 'the damaged object waits to be removed')
  })

  test('an object that is gone is refused as gone, and sending the bytes again mends it', async () => {
    await using store = await open()
    const stored = await put(store.blobs, patterned(1000))
    store.fake.objects.clear()
    await assert.rejects(store.blobs.open(stored), refusedWith('output_unavailable'))
    await put(store.blobs, patterned(1000))
    assert.ok(patterned(1000).equals(await readAll(await store.blobs.open(stored))))
  })

  test('while the storage is away everything is refused as unavailable with a time to come back, and nothing is half kept', async () => {
    await using store = await open()
    const stored = await put(store.blobs, patterned(1000))
    store.fake.isDown = true
    const isAway = (error: { refusal?: string; retryAfterSeconds?: number }) =>
      error.refusal === 'store_unavailable' && (error.retryAfterSeconds ?? 0) > 0
    await assert.rejects(put(store.blobs, patterned(500, 2)), isAway)
    await assert.rejects(put(store.blobs, patterned(9 * MIB, 3)), isAway)
    await assert.rejects(store.blobs.open(stored), isAway)
    assert.equal(store.client.isAnswering(), false)
    assert.equal(await store.blobs.stat(store.hash(patterned(500, 2))), null)
    assert.equal(await store.blobs.stat(store.hash(patterned(9 * MIB, 3))), null)
    store.fake.isDown = false
    await put(store.blobs, patterned(500, 2))
    assert.ok(patterned(1000).equals(await readAll(await store.blobs.open(stored))))
    assert.equal(store.client.isAnswering(), true)
  })

  test('a storage in trouble is not asked several times as often by everybody', async () => {
    await using store = await open({ patience: { firstPauseMs: 1, maxPauseMs: 1, budget: 6 } })
    store.fake.isDown = true
    for (let count = 0; count < 10; count++) await assert.rejects(put(store.blobs, patterned(10, count)))
    // Ten requests and the budget of retries.
    assert.ok(store.fake.asked.length <= 16, `${store.fake.asked.length}`)
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

  test('a clock that differs is mended by the time that the storage tells', async () => {
    await using store = await open()
    for (const skewMs of [3_600_000, -3_600_000]) {
      store.fake.skewMs = skewMs
      const bytes = patterned(100, skewMs)
      assert.ok(bytes.equals(await readAll(await store.blobs.open(await put(store.blobs, bytes)))))
    }
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

  test('borrowed files stay while they are borrowed, and the least used go first when room is needed', async () => {
    await using store = await open({ cacheBytes: 2500 })
    const [a, b, c] = await Promise.all([1, 2, 3].map((seed) => put(store.blobs, patterned(1000, seed))))
    const borrow = (hash: string) => store.blobs.borrow?.(hash) ?? assert.fail()
    store.fake.asked.length = 0
    const first = await borrow(a)
    const [again, second] = await Promise.all([borrow(a), borrow(b)])
    assert.equal(again.path, first.path)
    assert.deepEqual(store.fake.asked, ['get', 'get'], 'each is fetched once')
    const third = await borrow(c)
    for (const [file, seed] of [
      [first, 1],
      [second, 2],
      [third, 3],
    ] as const)
      assert.ok(patterned(1000, seed).equals(await readFile(file.path)), 'all are in use, whatever the bound')
    assert.equal((await stat(first.path)).mode & 0o777, 0o600)
    await second[Symbol.asyncDispose]()
    await assert.rejects(stat(second.path), { code: 'ENOENT' })
    await first[Symbol.asyncDispose]()
    assert.ok(patterned(1000, 1).equals(await readFile(first.path)), 'somebody else has it still')
    await again[Symbol.asyncDispose]()
    await third[Symbol.asyncDispose]()
    store.fake.asked.length = 0
    await (await borrow(a))[Symbol.asyncDispose]()
    assert.ok(patterned(1000, 3).equals(await readAll(await store.blobs.open(c))), 'reads use the file that is here')
    assert.deepEqual(store.fake.asked, [])
  })

  test('a file that somebody removed is fetched anew', async () => {
    await using store = await open()
    const stored = await put(store.blobs, patterned(1000))
    const borrow = () => store.blobs.borrow?.(stored) ?? assert.fail()
    await (await borrow())[Symbol.asyncDispose]()
    await rm(join(store.directory, 'this'), { recursive: true })
    await using file = await borrow()
    assert.ok(patterned(1000).equals(await readFile(file.path)))
  })

  test('folders of processes that are gone are removed, and none that may be in use', async () => {
    await using store = await open()
    const { directory } = store
    const hourAgo = new Date(Date.now() - 3_600_000)
    for (const name of ['dead', 'quiet', 'living']) await mkdir(join(directory, name, 'tmp'), { recursive: true })
    for (const name of ['dead', 'living']) await utimes(join(directory, name), hourAgo, hourAgo)
    const users = { own: 'new', live: new Set(['new', 'this', 'living']) }
    await using _files = await openLocalFiles({ directory, maxBytes: 0, users, files: diskFileOps })
    assert.deepEqual((await readdir(directory)).sort(), ['living', 'new', 'quiet', 'this'])
  })

  test('a fetch that fails leaves no file and is tried anew by the next who asks', async () => {
    await using store = await open({ cacheBytes: 0 })
    const stored = await put(store.blobs, patterned(1000))
    store.fake.isDown = true
    await assert.rejects(store.blobs.borrow?.(stored) ?? assert.fail(), refusedWith('store_unavailable'))
    store.fake.isDown = false
    const file = (await store.blobs.borrow?.(stored)) ?? assert.fail()
    assert.ok(patterned(1000).equals(await readFile(file.path)))
    await file[Symbol.asyncDispose]()
    await assert.rejects(stat(file.path), { code: 'ENOENT' }, 'nothing is kept without a use')
  })
})
