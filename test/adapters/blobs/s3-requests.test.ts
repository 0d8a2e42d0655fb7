/** How requests to a bucket share its connections, and how long each may take. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { inChunks, patterned, put, readAll, refusedWith } from '../../contracts/assets/blob-store.ts'
import { startFakeS3 } from '../../support/s3/fake-s3.ts'
import { openBlobsOn, openTestIndex } from '../../support/s3/open-s3-blobs.ts'
import type { S3Fault } from '../../support/s3/s3-faults.ts'
import { waitUntil } from '../../support/wait-until.ts'

type OpenOptions = NonNullable<Parameters<typeof openBlobsOn>[2]>

const UNLIMITED = { maxBytes: Number.MAX_SAFE_INTEGER }
const MIB = 1024 * 1024

describe('requests to a bucket', () => {
  let shared: Awaited<ReturnType<typeof openTestIndex>>
  before(async () => {
    shared = await openTestIndex()
  })
  after(() => shared[Symbol.asyncDispose]())

  let prefix = 0
  async function open(options: OpenOptions = {}) {
    await using opening = new AsyncDisposableStack()
    const fake = opening.use(await startFakeS3())
    const place = { endpoint: fake.url, bucket: 'test-bytes', keys: fake.keys, prefix: `${++prefix}/` }
    const opened = opening.use(await openBlobsOn(place, shared.index, options))
    const all = opening.move()
    return { ...opened, fake, [Symbol.asyncDispose]: () => all.disposeAsync() }
  }

  const putPart = (operation: string) => operation === 'put_part'

  test('joins that read while they write never wait for each other, however few connections there are', {
    timeout: 60_000,
  }, async () => {
    await using store = await open({ lanes: { reads: 2, writes: 2 } })
    const stored = await Promise.all([1, 2].map((seed) => put(store.blobs, patterned(40 * MIB, seed))))
    const sources = await Promise.all(stored.map((hash) => store.blobs.open(hash)))
    const joined = await Promise.all(sources.map((source) => store.blobs.receive(source, UNLIMITED)))
    assert.deepEqual(
      joined.map(({ hash }) => hash),
      stored,
    )
    for (const pending of joined) await pending.discard()
  })

  test('readers that hold every connection keep nobody waiting for long, and nothing from being stored', async () => {
    await using store = await open({ lanes: { reads: 2, writes: 2, readWaitMs: 20 } })
    const stored = await put(store.blobs, patterned(9 * MIB, 5))
    const held = [await store.blobs.open(stored), await store.blobs.open(stored)]
    await assert.rejects(store.blobs.open(stored), refusedWith('store_unavailable'))
    assert.equal(store.client.isAnswering(), true, 'the storage is not to blame')
    await put(store.blobs, patterned(9 * MIB, 6))
    held[0]?.destroy()
    // Its connection is free a moment later.
    const freed = await waitUntil(() => store.blobs.open(stored).catch(() => null))
    assert.ok(patterned(9 * MIB, 5).equals(await readAll(freed)))
    assert.ok(patterned(9 * MIB, 5).equals(await readAll(held[1] ?? assert.fail())))
  })

  test('a part may take any time while its bytes go out', async () => {
    await using store = await open({ silentMs: 3_000 })
    const sips: S3Fault = { kind: 'sip', pauses: 10, pauseMs: 400 }
    store.fake.fail('put_part', sips)
    const bytes = patterned(10 * MIB, 7)
    assert.ok(bytes.equals(await readAll(await store.blobs.open(await put(store.blobs, bytes)))))
    assert.equal(store.fake.asked.filter(putPart).length, 2, 'none was sent twice')
  })

  test('a part that nobody answers is given up', async () => {
    await using store = await open({ silentMs: 20, answerMs: 20, patience: { maxTries: 1 } })
    const never = Promise.withResolvers<void>()
    store.fake.fail('put_part', { kind: 'stall', until: never.promise }, 2)
    await assert.rejects(put(store.blobs, patterned(10 * MIB, 8)), refusedWith('store_unavailable'))
    never.resolve()
  })

  test('joining the parts may take any time while the storage says that it is at work', async () => {
    await using store = await open({ silentMs: 3_000, answerMs: 3_000 })
    store.fake.fail('complete_upload', { kind: 'keep_alive', blanks: 15, everyMs: 300, code: null })
    await put(store.blobs, patterned(9 * MIB, 9))
    assert.equal(store.fake.asked.filter((operation) => operation === 'complete_upload').length, 1)
  })

  test('a failure that comes after 200 and many blanks is a failure', async () => {
    await using store = await open({ patience: { maxTries: 1 } })
    store.fake.fail('complete_upload', { kind: 'keep_alive', blanks: 2, everyMs: 1, code: 'SlowDown' })
    const receiving = store.blobs.receive(inChunks(patterned(9 * MIB, 10), MIB), UNLIMITED)
    await assert.rejects(receiving, refusedWith('store_unavailable'))
  })
})
