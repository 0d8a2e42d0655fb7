/** The blob store on a bucket whose storage fails: requests and downloads that break, damage, loss and outages. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { patterned, put, readAll, refusedWith } from '../../contracts/assets/blob-store.ts'
import { UNAVAILABLE } from '../../support/s3/s3-faults.ts'
import { MIB, useBuckets } from './s3-rig.ts'

describe('bytes in a bucket that fails', () => {
  const { open } = useBuckets()

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

  test('a clock that differs is mended by the time that the storage tells', async () => {
    await using store = await open()
    for (const skewMs of [3_600_000, -3_600_000]) {
      store.fake.skewMs = skewMs
      const bytes = patterned(100, skewMs)
      assert.ok(bytes.equals(await readAll(await store.blobs.open(await put(store.blobs, bytes)))))
    }
  })
})
