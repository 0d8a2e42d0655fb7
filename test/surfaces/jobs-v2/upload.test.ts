import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listAll, patterned } from '../../contracts/assets/blob-store.ts'
import type { WireAsset } from '../../support/clients/checked-client.ts'
import { asAccount, errorOf, FIELDS, openAssetService, upload, uploaded } from './asset-service.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

test('an upload answers 201 with the whole record and a hash that the server computed', async () => {
  await using service = await openAssetService()
  const bytes = patterned(200_000)
  const response = await upload(service, { bytes })
  const asset = (await response.json()) as WireAsset
  assert.equal(response.status, 201)
  assert.match(response.headers.get('content-type') ?? '', /^application\/json/)
  assert.match(asset.id, UUID)
  assert.equal(asset.url, `http://atelier.test/mounted/api/v2/assets/${asset.id}/content`)
  assert.ok(new Date(asset.url_expires_at).getTime() > Date.now())
  assert.deepEqual(Object.keys(asset).sort(), [
    'content_type',
    'created_at',
    'created_new',
    'expires_at',
    'file_path',
    'hash',
    'id',
    'size_bytes',
    'url',
    'url_expires_at',
  ])
  const { hash, size_bytes, content_type, file_path, created_new, expires_at } = asset
  assert.deepEqual(
    { hash, size_bytes, content_type, file_path, created_new, expires_at },
    {
      hash: `blake3:${service.blake3.hash(bytes)}`,
      size_bytes: 200_000,
      content_type: 'image/png',
      file_path: 'photo.png',
      created_new: true,
      expires_at: null,
    },
  )
})

test('the same bytes and path again are the same record, another path is another one, both 200', async () => {
  await using service = await openAssetService()
  const first = await uploaded(service)
  const again = await upload(service)
  assert.equal(again.status, 200)
  const same = (await again.json()) as WireAsset
  assert.equal(same.id, first.id)
  assert.equal(same.created_new, false)
  const elsewhere = await upload(service, { fields: { ...FIELDS, file_path: 'other.png' } })
  assert.equal(elsewhere.status, 200)
  assert.notEqual(((await elsewhere.json()) as WireAsset).id, first.id)
  assert.equal((await service.storedFiles()).length, 1)
})

test("another account's bytes do not show", async () => {
  await using service = await openAssetService()
  await uploaded(service)
  const response = await upload(service, { headers: asAccount('other') })
  assert.equal(response.status, 201)
  assert.equal(((await response.json()) as WireAsset).created_new, true)
})

test('an expected hash is compared in any case; a wrong one is 409 and mints nothing', async () => {
  await using service = await openAssetService()
  const bytes = patterned(100)
  const hash = service.blake3.hash(bytes)
  const good = await upload(service, { bytes, fields: { ...FIELDS, expected_hash: `BLAKE3:${hash.toUpperCase()}` } })
  assert.equal(good.status, 201)
  const wrong = await upload(service, { bytes: patterned(101), fields: { ...FIELDS, expected_hash: `blake3:${hash}` } })
  const { status, code } = await errorOf(wrong)
  assert.deepEqual([status, code], [409, 'hash_mismatch'])
  assert.deepEqual(await service.storedFiles(), [hash])
  assert.deepEqual(await listAll(service.blobs), [hash])
})

test('names in any script and with slashes arrive as they were sent', async () => {
  await using service = await openAssetService()
  const path = 'input/ordner/写真 żółw "q".png'
  const asset = await uploaded(service, { fields: { ...FIELDS, file_path: path }, fileName: path })
  assert.equal(asset.file_path, path)
})

test('a body without a length and an empty file are taken', async () => {
  await using service = await openAssetService()
  const boundary = 'b-1'
  async function* body() {
    yield Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="content_type"\r\n\r\ntext/plain\r\n`)
    yield Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="file_path"\r\n\r\na.txt\r\n`)
    yield Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n`)
    for (const piece of ['chun', 'k', 'ed']) yield Buffer.from(piece)
    yield Buffer.from(`\r\n--${boundary}--\r\n`)
  }
  const response = await fetch(`${service.origin}/api/v2/assets`, {
    method: 'POST',
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    body: ReadableStream.from(body()),
    duplex: 'half',
  })
  const asset = (await response.json()) as WireAsset
  assert.equal(asset.hash, `blake3:${service.blake3.hash(Buffer.from('chunked'))}`)
  const empty = await uploaded(service, { bytes: Buffer.alloc(0) })
  assert.equal(empty.size_bytes, 0)
})

const REFUSED_FIELDS: Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>> = {
  'no content_type': { file_path: 'a.png' },
  'no file_path': { content_type: 'image/png' },
  'an empty path': { ...FIELDS, file_path: '' },
  'a path upwards': { ...FIELDS, file_path: 'input/../../etc/passwd' },
  'an absolute path': { ...FIELDS, file_path: '/etc/passwd' },
  'a bare root': { ...FIELDS, file_path: 'input' },
  'no media type': { ...FIELDS, content_type: 'png' },
  'a short life': { ...FIELDS, expires_in: '59' },
  'a long life': { ...FIELDS, expires_in: '604801' },
  'a life that is no number': { ...FIELDS, expires_in: '1e3' },
  'a life of 20 digits': { ...FIELDS, expires_in: '9'.repeat(20) },
  'a hash that is none': { ...FIELDS, expected_hash: 'blake3:xyz' },
  'a hash without its prefix': { ...FIELDS, expected_hash: 'a'.repeat(64) },
  'too many tags': { ...FIELDS, tags: Array.from({ length: 33 }, (_, index) => `${index}`) },
  'a long tag': { ...FIELDS, tags: 'x'.repeat(129) },
  'a repeated field': { ...FIELDS, file_path: ['a.png', 'b.png'] },
  'a huge field': { ...FIELDS, note: 'x'.repeat(100_000) },
  'too many fields': { ...FIELDS, ...Object.fromEntries(Array.from({ length: 90 }, (_, index) => [`f${index}`, 'x'])) },
  'a model without a models folder': { ...FIELDS, file_path: 'models/loras/x.safetensors' },
}

test('a field that is missing or wrong is 422 and leaves nothing', async (t) => {
  await using service = await openAssetService()
  for (const [name, fields] of Object.entries(REFUSED_FIELDS)) {
    await t.test(name, async () => {
      const { status, code, message } = await errorOf(await upload(service, { fields, bytes: patterned(300_000) }))
      assert.deepEqual([status, code], [422, 'invalid_request'], message)
      assert.ok(message.length > 10)
      assert.deepEqual(await service.storedFiles(), [])
      assert.deepEqual(service.defects, [])
    })
  }
})

test('a life within the bounds is kept; sending the same again may only extend it', async () => {
  await using service = await openAssetService()
  const first = await uploaded(service, { fields: { ...FIELDS, expires_in: '3600' } })
  const shorter = await uploaded(service, { fields: { ...FIELDS, expires_in: '60' } })
  assert.equal(shorter.id, first.id)
  assert.equal(shorter.expires_at, first.expires_at)
  assert.equal(first.url_expires_at, first.expires_at)
  const longer = await uploaded(service, { fields: { ...FIELDS, expires_in: '7200' } })
  assert.ok((longer.expires_at ?? '') > (first.expires_at ?? ''))
  service.aheadMs = 7_300_000
  const gone = await fetch(`${service.origin}/api/v2/assets/${first.id}`)
  assert.equal(gone.status, 404)
})

test('a used key is 422 and names the asset; nothing of the second body is kept', async () => {
  await using service = await openAssetService()
  const headers = { 'idempotency-key': 'once' }
  const first = await uploaded(service, { headers })
  const { status, code, details } = await errorOf(await upload(service, { headers, bytes: patterned(100_000) }))
  assert.deepEqual([status, code, details], [422, 'idempotency_key_reuse', { asset_id: first.id }])
  assert.equal((await service.storedFiles()).length, 1)
  const other = await upload(service, { headers: { ...headers, ...asAccount('other') } })
  assert.equal(other.status, 201)
})

test('of two uploads with one key at the same time exactly one is taken', async () => {
  await using service = await openAssetService()
  const headers = { 'idempotency-key': 'race' }
  const both = await Promise.all([1, 2].map((seed) => upload(service, { headers, bytes: patterned(50_000, seed) })))
  assert.deepEqual(both.map(({ status }) => status).sort(), [201, 422])
})

test('a refused upload leaves its key free; a bad key is 400', async () => {
  await using service = await openAssetService()
  const headers = { 'idempotency-key': 'again' }
  const refused = await upload(service, { headers, fields: { ...FIELDS, expected_hash: `blake3:${'0'.repeat(64)}` } })
  assert.equal(refused.status, 409)
  assert.equal((await upload(service, { headers })).status, 201)
  for (const key of ['', 'x'.repeat(256)]) {
    const { status, code } = await errorOf(await upload(service, { headers: { 'idempotency-key': key } }))
    assert.deepEqual([status, code], [400, 'invalid_request'])
  }
})

test('a file over the limit is 413 with nothing left, also when its length was not declared', async () => {
  await using service = await openAssetService({ maxUploadBytes: 1_000_000 })
  const exact = await upload(service, { bytes: patterned(1_000_000) })
  assert.equal(exact.status, 201)
  for (const size of [1_000_001, 4_000_000]) {
    const { status, code } = await errorOf(await upload(service, { bytes: patterned(size) }))
    assert.deepEqual([status, code], [413, 'payload_too_large'])
  }
  assert.equal((await service.storedFiles()).length, 1)
  assert.deepEqual(service.defects, [])
})
