import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { patterned } from '../../contracts/assets/blob-store.ts'
import type { WireAsset } from '../../support/clients/checked-client.ts'
import { type AssetService, asAccount, errorOf, FIELDS, openAssetService, uploaded } from './asset-service.ts'

let service: AssetService
before(async () => {
  service = await openAssetService()
})
after(() => service[Symbol.asyncDispose]())

const fromHash = (body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${service.origin}/api/v2/assets/from-hash`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

const head = (hash: string, headers: Record<string, string> = {}) =>
  fetch(`${service.origin}/api/v2/assets/by-hash/${hash}`, { method: 'HEAD', headers })

test('known bytes are found with a raw and with an escaped colon, in any case', async () => {
  const { hash } = await uploaded(service, { bytes: patterned(10) })
  for (const spelling of [
    hash,
    hash.replace(':', '%3A'),
    hash.replace(':', '%3a').toUpperCase().replace('%3A', '%3A'),
  ]) {
    assert.equal((await head(spelling)).status, 200, spelling)
  }
})

test('unknown, foreign and malformed hashes are 404 without a body', async () => {
  const { hash } = await uploaded(service, { bytes: patterned(11) })
  const answers = [
    await head(`blake3:${'0'.repeat(64)}`),
    await head(hash, asAccount('other')),
    await head('nonsense'),
    await head(hash.slice('blake3:'.length)),
  ]
  for (const response of answers) {
    assert.equal(response.status, 404)
    assert.equal(await response.text(), '')
  }
})

test('the same path gives the same record with 200, another path a new one with 201', async () => {
  const asset = await uploaded(service, { bytes: patterned(12) })
  const same = await fromHash({ hash: asset.hash, file_path: asset.file_path })
  assert.equal(same.status, 200)
  const known = (await same.json()) as WireAsset
  assert.deepEqual([known.id, known.created_new], [asset.id, false])
  const other = await fromHash({
    hash: asset.hash.toUpperCase().replace('BLAKE3', 'blake3'),
    file_path: 'other/name.png',
  })
  assert.equal(other.status, 201)
  const minted = (await other.json()) as WireAsset
  assert.notEqual(minted.id, asset.id)
  assert.deepEqual(
    [minted.created_new, minted.file_path, minted.size_bytes, minted.content_type],
    [false, 'other/name.png', 12, 'image/png'],
  )
  const again = await fromHash({ hash: asset.hash, file_path: 'other/name.png' })
  assert.equal(((await again.json()) as WireAsset).id, minted.id)
})

test('tags tell records apart, whatever their order', async () => {
  const { hash } = await uploaded(service, { bytes: patterned(13) })
  const ids: string[] = []
  for (const tags of [['a', 'b'], ['b', 'a', 'b'], ['a'], null]) {
    const response = await fromHash({ hash, file_path: 'tagged.png', tags })
    ids.push(((await response.json()) as WireAsset).id)
  }
  assert.equal(ids[0], ids[1])
  assert.equal(new Set(ids).size, 3)
})

test('a new reference extends the life of the record and never shortens it', async () => {
  const { hash, id } = await uploaded(service, { bytes: patterned(14), fields: { ...FIELDS, expires_in: '3600' } })
  const read = async () =>
    ((await (await fetch(`${service.origin}/api/v2/assets/${id}`)).json()) as WireAsset).expires_at
  const first = await read()
  await fromHash({ hash, file_path: FIELDS.file_path, expires_in: 60 })
  assert.equal(await read(), first)
  await fromHash({ hash, file_path: FIELDS.file_path, expires_in: 604_800 })
  assert.ok(((await read()) ?? '') > (first ?? ''))
})

test('unknown and foreign bytes are blob_not_found alike', async () => {
  const { hash } = await uploaded(service, { bytes: patterned(15) })
  const unknown = await errorOf(await fromHash({ hash: `blake3:${'1'.repeat(64)}` }))
  const foreign = await errorOf(await fromHash({ hash }, asAccount('other')))
  assert.deepEqual([unknown.status, unknown.code], [404, 'blob_not_found'])
  assert.deepEqual(foreign, unknown)
})

test('bytes that are lost count as unknown, and an upload heals them', async () => {
  const bytes = patterned(16)
  const asset = await uploaded(service, { bytes })
  await service.blobs.remove(service.blake3.hash(bytes), async () => false)
  assert.equal((await head(asset.hash)).status, 404)
  assert.equal((await fromHash({ hash: asset.hash })).status, 404)
  assert.equal((await uploaded(service, { bytes })).id, asset.id)
  const healed = await fetch(`${service.origin}/api/v2/assets/${asset.id}/content`)
  assert.ok(bytes.equals(Buffer.from(await healed.arrayBuffer())))
})

test('a body that cannot be read is 400; a field that is wrong is 422', async () => {
  const { hash } = await uploaded(service, { bytes: patterned(17) })
  for (const body of ['', '{', '[]', '"x"', 'null']) assert.equal((await fromHash(body)).status, 400, body)
  const wrong = [
    {},
    { hash: null },
    { hash: 'blake3:xyz' },
    { hash: hash.slice(7) },
    { hash, file_path: 7 },
    { hash, file_path: '../x' },
    { hash, file_path: 'models/loras/x.safetensors' },
    { hash, tags: 'a' },
    { hash, tags: [1] },
    { hash, tags: Array.from({ length: 33 }, (_, index) => `${index}`) },
    { hash, expires_in: '60' },
    { hash, expires_in: 59 },
    { hash, expires_in: 604_801 },
    { hash, expires_in: 60.5 },
    { hash, expires_in: true },
  ]
  for (const body of wrong) {
    const { status, code } = await errorOf(await fromHash(body))
    assert.deepEqual([status, code], [422, 'invalid_request'], JSON.stringify(body))
  }
  assert.equal((await fromHash(`{"hash":"${hash}","expires_in":1e400}`)).status, 422)
  assert.deepEqual(service.defects, [])
})
