/** Two processes on one bucket and one index, and what the housekeeper removes beside them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { silentLog } from '../../../lib/log.ts'
import { createObjectCollector } from '../../../src/adapters/blobs/s3/collect-objects.ts'
import { inChunks, patterned, put, readAll, refusedWith } from '../../contracts/assets/blob-store.ts'
import { startFakeS3 } from '../../support/s3/fake-s3.ts'
import { openBlobsOn, openTestIndex } from '../../support/s3/open-s3-blobs.ts'

const UNLIMITED = { maxBytes: Number.MAX_SAFE_INTEGER }
const MIB = 1024 * 1024
const HOUR_MS = 3_600_000
const NEVER = new AbortController().signal

async function openTwo() {
  await using opening = new AsyncDisposableStack()
  let nowMs = Date.parse('2026-03-10T12:00:00Z')
  const clock = { now: () => new Date(nowMs) }
  const { index } = opening.use(await openTestIndex())
  const fake = opening.use(await startFakeS3({ pageSize: 2 }))
  const place = { endpoint: fake.url, bucket: 'test-bytes', keys: fake.keys, prefix: 'a/b/' }
  const one = opening.use(await openBlobsOn(place, index, { clock }))
  const other = opening.use(await openBlobsOn(place, index, { clock }))
  let swept: string | null = null
  const collector = createObjectCollector({
    bucket: one.bucket,
    prefix: 'a/b/',
    index,
    clock,
    log: silentLog,
    graceMs: HOUR_MS,
    marks: {
      read: async () => swept,
      write: async (day) => {
        swept = day
      },
    },
  })
  const open = opening.move()
  return {
    ...{ index, fake, collector, one: one.blobs, other: other.blobs, bucket: one.bucket },
    pass(ms: number) {
      nowMs += ms
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

describe('two processes on one bucket', () => {
  test('what one stores the other reads, whole and in parts, and stores no second time', async () => {
    await using two = await openTwo()
    for (const size of [1000, 9 * MIB]) {
      const bytes = patterned(size)
      const stored = await put(two.one, bytes)
      assert.ok(bytes.equals(await readAll(await two.other.open(stored))))
      assert.ok(bytes.subarray(10, 500).equals(await readAll(await two.other.open(stored, { start: 10, end: 499 }))))
      await put(two.other, bytes)
    }
    assert.equal(two.fake.objects.size, 2)
    assert.ok([...two.fake.objects.keys()].every((key) => key.startsWith('a/b/up/2026-03-10/')))
  })

  for (const size of [1000, 9 * MIB]) {
    test(`${size} bytes that one announces before the other has asked stay`, async () => {
      await using two = await openTwo()
      const bytes = patterned(size)
      const stored = await put(two.one, bytes)
      const pending = await two.other.receive(inChunks(bytes, 100_000), UNLIMITED)
      let kept: Promise<void> | null = null
      await two.one.remove(stored, async () => {
        kept = pending.keep()
        return true
      })
      await kept
      assert.ok(bytes.equals(await readAll(await two.other.open(stored))))
      assert.equal(two.fake.objects.size, 1)
    })

    test(`${size} bytes that are announced after the question are stored anew, and readers find them`, async () => {
      await using two = await openTwo()
      const bytes = patterned(size)
      const stored = await put(two.one, bytes)
      // A reader that remembers the first object.
      await readAll(await two.one.open(stored))
      const pending = await two.other.receive(inChunks(bytes, 100_000), UNLIMITED)
      let kept: Promise<void> | null = null
      await two.one.remove(stored, async () => {
        kept = pending.keep()
        return false
      })
      await kept
      two.pass(2 * HOUR_MS)
      assert.equal(await two.collector.removeGarbage(NEVER), 1)
      for (const blobs of [two.one, two.other]) assert.ok(bytes.equals(await readAll(await blobs.open(stored))))
    })
  }

  for (const size of [1000, 9 * MIB]) {
    test(`${size} bytes that are gone are mended by sending them again, through whichever process`, async () => {
      await using two = await openTwo()
      const bytes = patterned(size)
      const stored = await put(two.one, bytes)
      two.fake.objects.clear()
      await assert.rejects(two.one.open(stored), refusedWith('output_unavailable'))
      await put(two.other, bytes)
      for (const blobs of [two.one, two.other]) assert.ok(bytes.equals(await readAll(await blobs.open(stored))))
      assert.equal(two.fake.objects.size, 1)
      two.pass(HOUR_MS)
      await put(two.one, bytes)
      assert.equal(two.fake.objects.size, 1, 'what is there is left as it is')
    })
  }

  test('a removal that cannot ask removes nothing', async () => {
    await using two = await openTwo()
    const stored = await put(two.one, patterned(100))
    const removing = two.other.remove(stored, async () => {
      throw new Error('the store is away')
    })
    await assert.rejects(removing, /the store is away/)
    assert.deepEqual(await two.one.stat(stored), { sizeBytes: 100 })
  })

  test('many keeps and removals of the same bytes on both never lose announced bytes', async () => {
    await using two = await openTwo()
    const bytes = patterned(3000)
    const known = new Set<string>()
    for (let round = 0; round < 20; round++) {
      known.clear()
      const [keeper, remover] = round % 2 === 0 ? [two.one, two.other] : [two.other, two.one]
      const pending = await keeper.receive(inChunks(bytes, 1000), UNLIMITED)
      const isKnown = async () => known.has(pending.hash)
      const ingest = async () => {
        known.add(pending.hash)
        await pending.keep()
      }
      await Promise.all([remover.remove(pending.hash, isKnown), ingest(), remover.remove(pending.hash, isKnown)])
      two.pass(2 * HOUR_MS)
      await two.collector.removeGarbage(NEVER)
      assert.ok(bytes.equals(await readAll(await remover.open(pending.hash))), `round ${round}`)
    }
  })
})

describe('the housekeeper', () => {
  test('removes objects that nothing leads to after the grace and not before: whoever reads them reads on', async () => {
    await using two = await openTwo()
    const stored = await put(two.one, patterned(9 * MIB))
    const reading = await two.other.open(stored)
    await two.one.remove(stored, async () => false)
    assert.equal(await two.collector.removeGarbage(NEVER), 0)
    assert.ok(patterned(9 * MIB).equals(await readAll(reading)))
    two.pass(HOUR_MS + 1)
    assert.equal(await two.collector.removeGarbage(NEVER), 1)
    assert.equal(two.fake.objects.size, 0)
    assert.deepEqual(await two.index.garbage(new Date(2 ** 42), 10), [])
    await assert.rejects(two.other.open(stored), refusedWith('output_unavailable'))
  })

  test('goes on where a storage that was away had stopped it', async () => {
    await using two = await openTwo()
    for (const seed of [1, 2, 3]) {
      await two.one.remove(await put(two.one, patterned(10, seed)), async () => false)
    }
    two.pass(HOUR_MS + 1)
    two.fake.isDown = true
    await assert.rejects(two.collector.removeGarbage(NEVER))
    two.fake.isDown = false
    assert.equal(await two.collector.removeGarbage(NEVER), 3)
    assert.equal(two.fake.objects.size, 0)
  })

  test('removes everything else when one object cannot be removed, and tries that one again later', async () => {
    await using two = await openTwo()
    for (const fault of [
      { kind: 'status', status: 403, code: 'AccessDenied' },
      { kind: 'status', status: 500, code: 'InternalError' },
    ] as const) {
      for (const seed of [1, 2, 3, 4]) await two.one.remove(await put(two.one, patterned(10, seed)), async () => false)
      two.pass(HOUR_MS + 1)
      two.fake.fail('delete', fault, fault.status === 403 ? 1 : 4)
      assert.equal(await two.collector.removeGarbage(NEVER), 3)
      assert.equal(two.fake.objects.size, 1)
      assert.equal(await two.collector.removeGarbage(NEVER), 0, 'not before its time')
      two.pass(HOUR_MS + 1)
      assert.equal(await two.collector.removeGarbage(NEVER), 1)
    }
    two.fake.objects.set('a/b/up/2026-03-09/stuck', { bytes: Buffer.from('x'), contentType: 'x' })
    two.pass(3 * 24 * HOUR_MS)
    two.fake.fail('delete', { kind: 'status', status: 403, code: 'AccessDenied' })
    assert.equal(await two.collector.sweepOrphans(NEVER), 0)
    two.pass(HOUR_MS + 1)
    assert.equal(await two.collector.removeGarbage(NEVER), 1, 'its day is swept once only')
  })

  test('leaves objects alone until they are two days old, whatever the time of the day', async () => {
    await using two = await openTwo()
    const midnight = Date.parse('2026-03-11T00:00:00Z')
    two.pass(midnight - 1000 - Date.parse('2026-03-10T12:00:00Z'))
    two.fake.objects.set('a/b/up/2026-03-10/young', { bytes: Buffer.from('x'), contentType: 'x' })
    two.pass(48 * HOUR_MS)
    assert.equal(await two.collector.sweepOrphans(NEVER), 0)
    two.pass(2000)
    assert.equal(await two.collector.sweepOrphans(NEVER), 1)
  })

  test('lists each day once, two days later, and removes what never came into the index', async () => {
    await using two = await openTwo()
    const kept = await put(two.one, patterned(100, 1))
    const garbage = await put(two.one, patterned(100, 2))
    // A process died between sending these and recording them.
    const orphans = ['a/b/up/2026-03-10/x', 'a/b/up/2026-03-10/y', 'a/b/up/2026-03-11/z']
    for (const key of [...orphans, 'a/b/id', 'elsewhere/up/2026-03-10/x'])
      two.fake.objects.set(key, { bytes: Buffer.from('x'), contentType: 'x' })
    two.pass(4 * 24 * HOUR_MS)
    await two.one.remove(garbage, async () => false)
    assert.equal(await two.collector.sweepOrphans(NEVER), 3)
    assert.deepEqual(
      [...two.fake.objects.keys()].filter((key) => !key.startsWith('a/b/up/')),
      ['a/b/id', 'elsewhere/up/2026-03-10/x'],
    )
    assert.equal((await two.index.garbage(new Date(2 ** 42), 10)).length, 1, 'it has its own time to go')
    assert.ok(patterned(100, 1).equals(await readAll(await two.other.open(kept))))
    two.fake.asked.length = 0
    assert.equal(await two.collector.sweepOrphans(NEVER), 0)
    assert.deepEqual(two.fake.asked, [], 'that day is done')
  })

  test('gives up uploads that were begun long ago, and none that is under way', async () => {
    await using two = await openTwo()
    const begun = async (ageMs: number) => {
      const uploadId = await two.bucket.beginUpload('a/b/up/2026-03-10/half')
      const upload = two.fake.uploads.get(uploadId) ?? assert.fail()
      two.fake.uploads.set(uploadId, { ...upload, begunAt: new Date(Date.parse('2026-03-10T12:00:00Z') - ageMs) })
      return uploadId
    }
    await begun(3 * 24 * HOUR_MS)
    const young = await begun(HOUR_MS)
    await two.collector.sweepOrphans(NEVER)
    assert.deepEqual([...two.fake.uploads.keys()], [young])
  })
})
