/** How every blob store behaves. An adapter's own test supplies a fresh, empty one and adds what only it can show. */
import assert from 'node:assert/strict'
import type { Readable } from 'node:stream'
import { test } from 'node:test'
import type { BlobListing, BlobStore, Blobs } from '../../../src/domain/assets/blob-store.ts'
import { ServiceError } from '../../../src/domain/errors.ts'

export interface OpenedBlobStore extends AsyncDisposable {
  readonly blobs: Blobs
  hash(bytes: Uint8Array): string
}

const UNLIMITED = { maxBytes: Number.MAX_SAFE_INTEGER }

/** Bytes that differ at neighbouring offsets, so that a wrong offset shows. */
export function patterned(length: number, seed = 1): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  let state = seed
  for (let at = 0; at < length; at++) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    bytes[at] = state >> 16
  }
  return bytes
}

export async function* inChunks(bytes: Uint8Array, chunkBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes)
}

export async function readAll(stream: Readable): Promise<Buffer> {
  return Buffer.concat(await stream.toArray())
}

export async function put(blobs: BlobStore, bytes: Uint8Array, chunkBytes = 65_536): Promise<string> {
  const pending = await blobs.receive(inChunks(bytes, chunkBytes), UNLIMITED)
  await pending.keep()
  return pending.hash
}

export async function listAll(blobs: BlobListing): Promise<string[]> {
  const hashes: string[] = []
  for await (const portion of blobs.list()) hashes.push(...portion)
  return hashes.sort()
}

export const refusedWith = (refusal: string) => (error: unknown) =>
  error instanceof ServiceError && error.refusal === refusal

export function testBlobStore(name: string, open: () => Promise<OpenedBlobStore>): void {
  const check = (behaviour: string, run: (opened: OpenedBlobStore) => Promise<void>) =>
    test(`${name}: ${behaviour}`, async () => {
      await using opened = await open()
      await run(opened)
    })

  // Around the sizes at which a store may change its way of working.
  for (const size of [0, 1, 65_535, 65_536, 65_537, 1_048_576, 3_145_731]) {
    check(`${size} bytes come back as they went in, with their hash and size`, async ({ blobs, hash }) => {
      const bytes = patterned(size)
      const pending = await blobs.receive(inChunks(bytes, 50_000), UNLIMITED)
      assert.equal(pending.hash, hash(bytes))
      assert.equal(pending.sizeBytes, size)
      await pending.keep()
      assert.deepEqual(await blobs.stat(pending.hash), { sizeBytes: size })
      assert.ok(bytes.equals(await readAll(await blobs.open(pending.hash))))
    })
  }

  check('a source may use one buffer for all of its chunks', async ({ blobs, hash }) => {
    const bytes = patterned(300_000)
    const reused = Buffer.alloc(10_000)
    async function* source() {
      for await (const chunk of inChunks(bytes, reused.length)) {
        reused.set(chunk)
        yield reused.subarray(0, chunk.length)
      }
    }
    const pending = await blobs.receive(source(), UNLIMITED)
    await pending.keep()
    assert.equal(pending.hash, hash(bytes))
    assert.ok(bytes.equals(await readAll(await blobs.open(pending.hash))))
  })

  check('ranges give exactly their slice', async ({ blobs }) => {
    const bytes = patterned(100_000)
    const stored = await put(blobs, bytes)
    for (const [start, end] of [
      [0, 0],
      [0, 99_999],
      [99_999, 99_999],
      [12_345, 78_901],
    ] as const) {
      assert.ok(bytes.subarray(start, end + 1).equals(await readAll(await blobs.open(stored, { start, end }))))
    }
  })

  check('bytes that are not there are null to stat and refused to open', async ({ blobs, hash }) => {
    const unknown = hash(patterned(5))
    assert.equal(await blobs.stat(unknown), null)
    await assert.rejects(blobs.open(unknown), refusedWith('output_unavailable'))
  })

  check('received bytes cannot be read before they are kept, nor after they were discarded', async ({ blobs }) => {
    for (const size of [1000, 200_000]) {
      const pending = await blobs.receive(inChunks(patterned(size), 4096), UNLIMITED)
      assert.equal(await blobs.stat(pending.hash), null)
      await pending.discard()
      assert.equal(await blobs.stat(pending.hash), null)
    }
  })

  check('the same bytes may be put at the same time, and again', async ({ blobs }) => {
    for (const size of [1000, 2_000_000]) {
      const bytes = patterned(size)
      const hashes = await Promise.all(Array.from({ length: 8 }, (_, index) => put(blobs, bytes, 1000 + 500 * index)))
      assert.equal(new Set(hashes).size, 1)
      await put(blobs, bytes)
      assert.ok(bytes.equals(await readAll(await blobs.open(hashes[0] ?? ''))))
    }
  })

  check('one byte over the limit is refused as soon as it comes', async ({ blobs }) => {
    for (const size of [1000, 200_000]) {
      let pulled = 0
      async function* endless() {
        for (;;) {
          pulled++
          yield Buffer.alloc(100)
        }
      }
      await assert.rejects(blobs.receive(endless(), { maxBytes: size }), refusedWith('payload_too_large'))
      assert.equal(pulled, size / 100 + 1)
      const exact = await blobs.receive(inChunks(patterned(size), 100), { maxBytes: size })
      await exact.discard()
    }
  })

  check('an abort ends a receive whose source is silent', async ({ blobs }) => {
    for (const size of [1000, 200_000]) {
      const controller = new AbortController()
      async function* stalls() {
        yield patterned(size)
        queueMicrotask(() => controller.abort(new Error('gave up')))
        await new Promise(() => {})
      }
      await assert.rejects(blobs.receive(stalls(), { ...UNLIMITED, signal: controller.signal }), /gave up/)
    }
    await assert.rejects(
      blobs.receive(inChunks(patterned(5), 5), { ...UNLIMITED, signal: AbortSignal.abort(new Error('too late')) }),
      /too late/,
    )
  })

  check('a source that breaks fails the receive with its own error and is told to end', async ({ blobs }) => {
    for (const size of [1000, 200_000]) {
      async function* breaks() {
        yield patterned(size)
        throw new Error('connection reset')
      }
      await assert.rejects(blobs.receive(breaks(), UNLIMITED), /connection reset/)
    }
    let ended = false
    async function* watched() {
      try {
        for (;;) yield Buffer.alloc(1000)
      } finally {
        ended = true
      }
    }
    await assert.rejects(blobs.receive(watched(), { maxBytes: 10_000 }))
    assert.ok(ended)
  })

  check('removed bytes are gone; bytes that are known again stay', async ({ blobs }) => {
    const [first, second] = [await put(blobs, patterned(1000, 1)), await put(blobs, patterned(1000, 2))]
    await blobs.remove(first, async () => false)
    await blobs.remove(second, async () => true)
    assert.equal(await blobs.stat(first), null)
    assert.deepEqual(await blobs.stat(second), { sizeBytes: 1000 })
    await blobs.remove(first, async () => false)
  })

  check('bytes that are put while they are being removed are there afterwards', async ({ blobs }) => {
    for (const size of [1000, 200_000]) {
      const bytes = patterned(size)
      const stored = await put(blobs, bytes)
      // The bytes come in before the removal asks, and are announced just after it has got its answer.
      const pending = await blobs.receive(inChunks(bytes, 10_000), UNLIMITED)
      const asked = Promise.withResolvers<void>()
      const answer = Promise.withResolvers<boolean>()
      const removing = blobs.remove(stored, () => {
        asked.resolve()
        return answer.promise
      })
      await asked.promise
      const keeping = pending.keep()
      answer.resolve(false)
      await Promise.all([removing, keeping])
      assert.ok(bytes.equals(await readAll(await blobs.open(stored))))
    }
  })

  check('many puts and removals of the same bytes at once never lose announced bytes', async ({ blobs }) => {
    const bytes = patterned(3000)
    const known = new Set<string>()
    for (let round = 0; round < 30; round++) {
      known.clear()
      const pending = await blobs.receive(inChunks(bytes, 1000), UNLIMITED)
      const ingest = async () => {
        known.add(pending.hash)
        await pending.keep()
      }
      await Promise.all([
        blobs.remove(pending.hash, async () => known.has(pending.hash)),
        ingest(),
        blobs.remove(pending.hash, async () => known.has(pending.hash)),
      ])
      assert.deepEqual(await blobs.stat(pending.hash), { sizeBytes: 3000 })
    }
  })

  check('a listing names every stored hash once', async ({ blobs }) => {
    assert.deepEqual(await listAll(blobs), [])
    const stored = await Promise.all([1, 2, 3].map((seed) => put(blobs, patterned(100, seed))))
    assert.deepEqual(await listAll(blobs), stored.sort())
  })

  check('a reader that stops early lets the bytes go', async ({ blobs }) => {
    const stored = await put(blobs, patterned(3_000_000))
    const stream = await blobs.open(stored)
    for await (const chunk of stream) {
      assert.ok(chunk.length > 0)
      break
    }
    assert.ok(stream.destroyed)
    await blobs.remove(stored, async () => false)
  })
}
