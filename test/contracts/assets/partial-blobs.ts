/** How every store of bytes takes those that come in pieces. A second opening of the same place stands for another process. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Blobs } from '../../../src/domain/assets/blob-store.ts'
import { inChunks, listAll, patterned, readAll, refusedWith } from './blob-store.ts'

interface OpenedPair extends AsyncDisposable {
  readonly one: Blobs
  readonly other: Blobs
  hash(bytes: Uint8Array): string
}

const MIB = 1024 * 1024
const never = new AbortController().signal

const append = (blobs: Blobs, place: string, bytes: Buffer, [from, to]: readonly [number, number]) =>
  blobs.partials.append(place, inChunks(bytes.subarray(from, to), 60_000), {
    ...{ offsetBytes: from, lengthBytes: bytes.length, signal: never },
  })

export function testPartialBlobs(name: string, open: () => Promise<OpenedPair>): void {
  const check = (behaviour: string, run: (pair: OpenedPair) => Promise<void>) =>
    test(`${name}: ${behaviour}`, async () => {
      await using pair = await open()
      await run(pair)
    })

  async function keep(blobs: Blobs, place: string, bytes: Buffer, hash: string): Promise<void> {
    const options = { sizeBytes: bytes.length, maxBytes: bytes.length }
    const pending = await blobs.partials.complete(place, options)
    assert.deepEqual([pending.hash, pending.sizeBytes], [hash, bytes.length])
    await pending.discard()
    // Whoever tries again finds everything.
    const again = await blobs.partials.complete(place, options)
    assert.equal(again.hash, hash)
    await again.keep()
    await blobs.partials.remove(place)
    assert.ok((await readAll(await blobs.open(hash))).equals(bytes))
  }

  check('pieces through several processes are one blob', async ({ one, other, hash }) => {
    const bytes = patterned(17 * MIB + 7, 3)
    const place = await one.partials.begin()
    assert.equal(await other.partials.sizeOf(place), 0)
    let at = 0
    for (const [blobs, to] of [
      [one, 100],
      [one, 9 * MIB],
      [other, 9 * MIB + 1],
      [other, 16 * MIB],
      [one, bytes.length],
    ] as const) {
      assert.deepEqual(await append(blobs, place, bytes, [at, to]), { sizeBytes: to, failure: null })
      at = to
      assert.equal(await one.partials.sizeOf(place), at)
      assert.equal(await other.partials.sizeOf(place), at)
    }
    await keep(one, place, bytes, hash(bytes))
    assert.deepEqual(await listAll(one), [hash(bytes)])
  })

  check('what one process took in alone is the same blob', async ({ one, hash }) => {
    const bytes = patterned(3 * MIB, 4)
    const place = await one.partials.begin()
    await append(one, place, bytes, [0, MIB])
    await append(one, place, bytes, [MIB, bytes.length])
    await keep(one, place, bytes, hash(bytes))
  })

  check('what came before a source broke is kept', async ({ one, other, hash }) => {
    const bytes = patterned(2 * MIB, 5)
    const place = await one.partials.begin()
    const broken = new Error('the line is cut')
    async function* source(): AsyncGenerator<Uint8Array> {
      yield* inChunks(bytes.subarray(0, MIB + 3), 70_000)
      throw broken
    }
    const options = { offsetBytes: 0, lengthBytes: bytes.length, signal: never }
    assert.deepEqual(await one.partials.append(place, source(), options), { sizeBytes: MIB + 3, failure: broken })
    const abort = new AbortController()
    async function* silent(): AsyncGenerator<Uint8Array> {
      yield bytes.subarray(MIB + 3, MIB + 5)
      setImmediate(() => abort.abort(broken))
      await new Promise(() => {})
    }
    const given = { offsetBytes: MIB + 3, lengthBytes: bytes.length, signal: abort.signal }
    assert.deepEqual(await one.partials.append(place, silent(), given), { sizeBytes: MIB + 5, failure: broken })
    await append(other, place, bytes, [MIB + 5, bytes.length])
    await keep(one, place, bytes, hash(bytes))
  })

  check('more than was announced is refused, and removed bytes are gone', async ({ one }) => {
    const place = await one.partials.begin()
    const options = { offsetBytes: 0, lengthBytes: 10, signal: never }
    const { sizeBytes, failure } = await one.partials.append(place, inChunks(Buffer.alloc(12), 8), options)
    assert.equal(sizeBytes, 8)
    assert.ok(refusedWith('payload_too_large')(failure))
    await one.partials.remove(place)
    assert.equal(await one.partials.sizeOf(place), 0)
    await one.partials.remove(place)
  })
}
