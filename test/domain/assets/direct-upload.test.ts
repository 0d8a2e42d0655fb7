/** Uploads that a client sends to the bucket itself: begun, signed and completed by any process, and judged as all others are. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newUuidV4 } from '../../../lib/ids.ts'
import { createSealer } from '../../../lib/sealer.ts'
import { createDirectUploadActions } from '../../../src/domain/assets/create/direct-upload.ts'
import { createUploadAsset } from '../../../src/domain/assets/create/upload-asset.ts'
import { createUploadPolicy } from '../../../src/domain/assets/create/upload-policy.ts'
import { createStorageQuota } from '../../../src/domain/assets/storage-quota.ts'
import { createModelPlacement } from '../../../src/domain/assets/weights/model-placement.ts'
import { patterned, put, readAll, refusedWith } from '../../contracts/assets/blob-store.ts'
import { startFakeS3 } from '../../support/s3/fake-s3.ts'
import { openBlobsOn, openTestIndex } from '../../support/s3/open-s3-blobs.ts'

const MIB = 1024 * 1024
const MAX_BYTES = 100 * MIB
const FIELDS = {
  filePath: 'large.bin',
  contentType: 'application/octet-stream',
  expectedHash: null,
  tags: [],
  expiresInSeconds: null,
}

async function openTwo() {
  await using opening = new AsyncDisposableStack()
  let nowMs = Date.parse('2026-03-10T12:00:00Z')
  const clock = { now: () => new Date(nowMs) }
  const { index, store } = opening.use(await openTestIndex())
  const fake = opening.use(await startFakeS3())
  const sealer = createSealer(Buffer.alloc(32, 7))
  let mintFails = false
  const mint: typeof store.assets.mint = async (request) => {
    if (!mintFails) return store.assets.mint(request)
    mintFails = false
    throw new Error('the store is away')
  }
  const start = async () => {
    const { blobs } = opening.use(
      await openBlobsOn({ endpoint: fake.url, bucket: 'test-bytes', keys: fake.keys }, index, { clock }),
    )
    const quota = createStorageQuota({
      uploads: { openBytes: async () => 0 },
      assets: store.assets,
      clock,
      limitOf: () => null,
    })
    const shared = {
      assets: { ...store.assets, mint },
      blobs,
      clock,
      newId: newUuidV4,
      retentionMs: null,
      quota,
      maxBytes: MAX_BYTES,
    }
    const uploads = createUploadPolicy(shared)
    const placement = createModelPlacement({ modelFiles: null, blobs })
    const uploadAsset = createUploadAsset({ ...shared, uploads, keys: store.keys, placement })
    const directUploads = blobs.directUploads ?? assert.fail()
    return { blobs, actions: createDirectUploadActions({ ...shared, directUploads, sealer, uploadAsset }) }
  }
  const [one, other] = [await start(), await start()]
  await store.accounts.put({ id: 'a', maxRunning: 1, maxQueued: 1 })
  const open = opening.move()
  return {
    ...{ fake, index, store, one, other },
    failNextMint() {
      mintFails = true
    },
    pass(ms: number) {
      nowMs += ms
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

type Two = Awaited<ReturnType<typeof openTwo>>

/** As a client does it: asks for addresses and sends each part there. */
async function send({ other }: Two, token: string, bytes: Buffer, partBytes: number) {
  const count = Math.ceil(bytes.length / partBytes)
  const numbers = Array.from({ length: count }, (_, index) => index + 1)
  const urls = await other.actions.signParts({ accountId: 'a', token }, numbers)
  return Promise.all(
    urls.map(async ({ url }, index) => {
      const body = new Uint8Array(bytes.subarray(index * partBytes, (index + 1) * partBytes))
      const answer = await fetch(url, { method: 'PUT', body })
      assert.equal(answer.status, 200, await answer.text())
      return { number: index + 1, etag: answer.headers.get('etag') ?? '' }
    }),
  )
}

describe('a direct upload', () => {
  test('is begun by one process, sent to the bucket and completed by another: the asset is like any other', async () => {
    await using two = await openTwo()
    const bytes = patterned(40 * MIB + 123)
    const { token, partBytes, partCount } = await two.one.actions.begin({
      accountId: 'a',
      sizeBytes: bytes.length,
      fields: FIELDS,
    })
    assert.deepEqual([partBytes, partCount], [16 * MIB, 3])
    const parts = await send(two, token, bytes, partBytes)
    const { asset, createdNew } = await two.other.actions.complete({
      accountId: 'a',
      token,
      parts,
      idempotencyKey: 'k',
    })
    assert.deepEqual([asset.sizeBytes, asset.filePath, createdNew], [bytes.length, 'large.bin', true])
    assert.ok(bytes.equals(await readAll(await two.one.blobs.open(asset.hash))))
    const again = await two.one.actions.complete({ accountId: 'a', token, parts, idempotencyKey: 'k' })
    assert.deepEqual([again.asset, again.createdNew], [asset, false], 'the answer may have been lost')
    await two.store.assets.remove('a', asset.id, new Date('2026-03-10T12:00:00Z'))
    await two.one.blobs.remove(asset.hash, async () => false)
    const late = two.one.actions.complete({ accountId: 'a', token, parts, idempotencyKey: null })
    await assert.rejects(late, refusedWith('not_found'), 'bytes that were let go of stay so')
  })

  test('is completed once however often that is asked for, also at the same time by several processes', async () => {
    await using two = await openTwo()
    const bytes = patterned(17 * MIB)
    const begun = await two.one.actions.begin({ accountId: 'a', sizeBytes: bytes.length, fields: FIELDS })
    const { token, partBytes } = begun
    const parts = await send(two, token, bytes, partBytes)
    const complete = ({ actions }: Two['one']) =>
      actions.complete({ accountId: 'a', token, parts, idempotencyKey: null })
    const made = await Promise.all([two.one, two.other, two.one, two.other].map(complete))
    assert.equal(new Set(made.map(({ asset }) => asset.id)).size, 1)
    assert.ok(bytes.equals(await readAll(await two.one.blobs.open(made[0]?.asset.hash ?? ''))))
  })

  test('whose record could not be written is completed by the next who asks, and not read again', async () => {
    await using two = await openTwo()
    const bytes = patterned(17 * MIB)
    const begun = await two.one.actions.begin({ accountId: 'a', sizeBytes: bytes.length, fields: FIELDS })
    const parts = await send(two, begun.token, bytes, begun.partBytes)
    const complete = () => two.one.actions.complete({ accountId: 'a', token: begun.token, parts, idempotencyKey: null })
    two.failNextMint()
    await assert.rejects(complete(), /the store is away/)
    two.fake.asked.length = 0
    const { asset } = await complete()
    assert.deepEqual(two.fake.asked, [])
    assert.ok(bytes.equals(await readAll(await two.one.blobs.open(asset.hash))))
  })

  test('survives answers that are lost and reads that break', async () => {
    await using two = await openTwo()
    const bytes = patterned(17 * MIB)
    const begun = await two.one.actions.begin({ accountId: 'a', sizeBytes: bytes.length, fields: FIELDS })
    const parts = await send(two, begun.token, bytes, begun.partBytes)
    two.fake.fail('complete_upload', { kind: 'lose_answer' })
    two.fake.fail('get', { kind: 'cut' }, 2)
    const { asset } = await two.one.actions.complete({
      accountId: 'a',
      token: begun.token,
      parts,
      idempotencyKey: null,
    })
    assert.equal(asset.sizeBytes, bytes.length)
  })

  test('takes no part that is larger or smaller than announced', async () => {
    await using two = await openTwo()
    const { token } = await two.one.actions.begin({ accountId: 'a', sizeBytes: 1000, fields: FIELDS })
    const [part] = await two.one.actions.signParts({ accountId: 'a', token }, [1])
    for (const size of [999, 1001, 1000]) {
      const { status } = await fetch(part?.url ?? '', { method: 'PUT', body: new Uint8Array(size) })
      assert.equal(status, size === 1000 ? 200 : 403, `${size}`)
    }
  })

  test('of bytes that are there already ends with one object', async () => {
    await using two = await openTwo()
    const bytes = patterned(17 * MIB)
    await put(two.one.blobs, bytes)
    const { token, partBytes } = await two.one.actions.begin({
      accountId: 'a',
      sizeBytes: bytes.length,
      fields: FIELDS,
    })
    const parts = await send(two, token, bytes, partBytes)
    await two.one.actions.complete({ accountId: 'a', token, parts, idempotencyKey: null })
    assert.equal(two.fake.objects.size, 1)
  })

  test('is refused before its first byte when it is too large or its fields are wrong', async () => {
    await using two = await openTwo()
    const begin = (sizeBytes: number, fields = FIELDS) => two.one.actions.begin({ accountId: 'a', sizeBytes, fields })
    await assert.rejects(begin(MAX_BYTES + 1), refusedWith('payload_too_large'))
    for (const sizeBytes of [0, -1, 1.5]) await assert.rejects(begin(sizeBytes), refusedWith('invalid_field'))
    await assert.rejects(begin(1, { ...FIELDS, filePath: '../x' }), refusedWith('invalid_field'))
    assert.equal(two.fake.uploads.size, 0)
  })

  test('that is not what was announced is refused and makes no record', async () => {
    await using two = await openTwo()
    const bytes = patterned(1000)
    const begin = (sizeBytes: number, expectedHash: string | null) =>
      two.one.actions.begin({ accountId: 'a', sizeBytes, fields: { ...FIELDS, expectedHash } })
    const complete = (token: string, parts: readonly { number: number; etag: string }[]) =>
      two.one.actions.complete({ accountId: 'a', token, parts, idempotencyKey: null })
    // A storage that does not look at the length that was signed.
    const longer = await begin(999, null)
    for (const { parts } of two.fake.uploads.values()) parts.set(1, { bytes, etag: '"e"' })
    await assert.rejects(complete(longer.token, [{ number: 1, etag: '"e"' }]), refusedWith('invalid_field'))
    const other = await begin(1000, '0'.repeat(64))
    const sent = await send(two, other.token, bytes, other.partBytes)
    await assert.rejects(complete(other.token, sent), refusedWith('hash_mismatch'))
    const { token } = await two.one.actions.begin({ accountId: 'a', sizeBytes: 1000, fields: FIELDS })
    for (const parts of [[], [{ number: 2, etag: '"x"' }], [{ number: 1, etag: '"x"' }]]) {
      const completing = two.one.actions.complete({ accountId: 'a', token, parts, idempotencyKey: null })
      await assert.rejects(completing, refusedWith('invalid_field'))
    }
    for await (const hashes of two.index.list()) assert.deepEqual(hashes, [])
  })

  test('belongs to its account, can be given up, and is over after a day', async () => {
    await using two = await openTwo()
    const begin = () => two.one.actions.begin({ accountId: 'a', sizeBytes: 1000, fields: FIELDS })
    const { token } = await begin()
    for (const holder of [
      { accountId: 'b', token },
      { accountId: 'a', token: `${token.slice(0, -4)}AAAA` },
      { accountId: 'a', token: '' },
    ]) {
      await assert.rejects(two.one.actions.signParts(holder, [1]), refusedWith('not_found'))
    }
    await assert.rejects(two.one.actions.signParts({ accountId: 'a', token }, [2]), refusedWith('invalid_field'))
    await two.other.actions.abandon({ accountId: 'a', token })
    assert.equal(two.fake.uploads.size, 0)
    const parts = [{ number: 1, etag: '"x"' }]
    const completing = two.one.actions.complete({ accountId: 'a', token, parts, idempotencyKey: null })
    await assert.rejects(completing, refusedWith('not_found'))
    const late = await begin()
    two.pass(24 * 3_600_000)
    await assert.rejects(
      two.one.actions.signParts({ accountId: 'a', token: late.token }, [1]),
      refusedWith('not_found'),
    )
  })
})
