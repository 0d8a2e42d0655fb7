import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir, readlink } from 'node:fs/promises'
import { get } from 'node:http'
import { after, before, test } from 'node:test'
import { patterned } from '../../contracts/assets/blob-store.ts'
import type { WireAsset } from '../../support/clients/checked-client.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type AssetService, asAccount, errorOf, FIELDS, openAssetService, uploaded } from './asset-service.ts'

let service: AssetService
before(async () => {
  service = await openAssetService()
})
after(() => service[Symbol.asyncDispose]())

const content = (asset: Pick<WireAsset, 'id'>, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(`${service.origin}/api/v2/assets/${asset.id}/content`, { method, headers })

const withType = (content_type: string, file_path = 'photo.png') => ({ fields: { content_type, file_path } })

test('the whole content comes with its length, type, tag and safety headers', async () => {
  const bytes = patterned(700_000)
  const asset = await uploaded(service, { bytes })
  const response = await content(asset)
  assert.equal(response.status, 200)
  const { headers } = response
  assert.ok(bytes.equals(Buffer.from(await response.arrayBuffer())))
  assert.equal(headers.get('content-length'), '700000')
  assert.equal(headers.get('content-type'), 'image/png')
  assert.equal(headers.get('accept-ranges'), 'bytes')
  assert.equal(headers.get('etag'), `"${service.blake3.hash(bytes)}"`)
  assert.equal(headers.get('x-content-type-options'), 'nosniff')
  assert.match(headers.get('content-security-policy') ?? '', /sandbox/)
  assert.equal(headers.get('content-disposition'), 'inline; filename="photo.png"')
})

test('HEAD has the headers of GET and no body', async () => {
  const asset = await uploaded(service, { bytes: patterned(5000) })
  const response = await content(asset, {}, 'HEAD')
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-length'), '5000')
  assert.equal((await response.arrayBuffer()).byteLength, 0)
})

test('a range gives exactly its slice', async () => {
  const bytes = patterned(100_000)
  const asset = await uploaded(service, { bytes })
  for (const [range, start, end] of [
    ['bytes=0-0', 0, 0],
    ['bytes=500-70000', 500, 70_000],
    ['bytes=99990-', 99_990, 99_999],
    ['bytes=-10', 99_990, 99_999],
    ['bytes=90000-900000', 90_000, 99_999],
  ] as const) {
    const response = await content(asset, { range })
    assert.equal(response.status, 206)
    assert.equal(response.headers.get('content-range'), `bytes ${start}-${end}/100000`)
    assert.equal(response.headers.get('content-length'), String(end - start + 1))
    assert.ok(bytes.subarray(start, end + 1).equals(Buffer.from(await response.arrayBuffer())), range)
    const head = await content(asset, { range }, 'HEAD')
    assert.equal(head.status, 206)
  }
})

test('a range outside is 416 with the size; a malformed or multiple one gives the whole', async () => {
  const asset = await uploaded(service, { bytes: patterned(100) })
  const outside = await content(asset, { range: 'bytes=100-' })
  assert.equal(outside.headers.get('content-range'), 'bytes */100')
  const { status, code } = await errorOf(outside)
  assert.deepEqual([status, code], [416, 'invalid_request'])
  for (const range of ['bytes=5-2', 'lines=1-2', 'bytes=0-1,5-6', 'nonsense']) {
    const response = await content(asset, { range })
    assert.equal(response.status, 200, range)
    assert.equal((await response.arrayBuffer()).byteLength, 100)
  }
})

test('an empty asset is an empty answer', async () => {
  const asset = await uploaded(service, { bytes: Buffer.alloc(0) })
  const response = await content(asset)
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-length'), '0')
  assert.equal((await content(asset, { range: 'bytes=0-' })).status, 416)
})

test('a client that has the content already gets 304; If-Range with another tag gets the whole', async () => {
  const asset = await uploaded(service, { bytes: patterned(1000) })
  const etag = `"${service.blake3.hash(patterned(1000))}"`
  for (const held of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
    const response = await content(asset, { 'if-none-match': held })
    assert.equal(response.status, 304)
    assert.equal(response.headers.get('etag'), etag)
  }
  assert.equal((await content(asset, { 'if-none-match': '"other"' })).status, 200)
  assert.equal((await content(asset, { range: 'bytes=0-1', 'if-range': etag })).status, 206)
  assert.equal((await content(asset, { range: 'bytes=0-1', 'if-range': '"other"' })).status, 200)
})

test('what a browser would run is only downloaded', async () => {
  for (const type of ['text/html', 'image/svg+xml', 'application/xml', 'application/pdf', 'TEXT/HTML; charset=utf-8']) {
    const asset = await uploaded(service, withType(type, 'page.x'))
    const response = await content(asset)
    await response.arrayBuffer()
    assert.match(response.headers.get('content-disposition') ?? '', /^attachment; /, type)
  }
})

test('a name outside of ASCII travels in the extended form, and cannot break the header', async () => {
  const asset = await uploaded(service, withType('image/png', `d/写真"'(1);.png`))
  const response = await content(asset)
  await response.arrayBuffer()
  assert.equal(
    response.headers.get('content-disposition'),
    `inline; filename="___'(1);.png"; filename*=UTF-8''%E5%86%99%E7%9C%9F%22%27%281%29%3B.png`,
  )
})

test('unknown, foreign and malformed ids are 404 not_found on every operation', async () => {
  const asset = await uploaded(service)
  const calls = [
    [`${asset.id}`, asAccount('other')],
    ['00000000-0000-4000-8000-000000000000', {}],
    ['..%2F..%2Ffree', {}],
    [asset.id.toUpperCase(), {}],
  ] as const
  for (const [id, headers] of calls) {
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['GET', '/content'],
    ] as const) {
      const response = await fetch(`${service.origin}/api/v2/assets/${id}${path}`, { method, headers })
      const { status, code } = await errorOf(response)
      assert.deepEqual([status, code], [404, 'not_found'], `${method} ${id}${path}`)
    }
  }
  assert.equal((await fetch(`${service.origin}/api/v2/assets/${asset.id}`)).status, 200)
})

test('a record whose bytes are gone is output_unavailable', async () => {
  const asset = await uploaded(service, { bytes: patterned(333) })
  await service.blobs.remove(service.blake3.hash(patterned(333)), async () => false)
  const { status, code, message } = await errorOf(await content(asset))
  assert.deepEqual([status, code], [404, 'output_unavailable'])
  assert.match(message, /again/)
})

test('delete is 204, then 404; bytes that another record uses stay', async () => {
  const bytes = patterned(444)
  const [one, two] = [
    await uploaded(service, { bytes }),
    await uploaded(service, { bytes, fields: { ...FIELDS, file_path: 'two.png' } }),
  ]
  const path = `${service.origin}/api/v2/assets/${one.id}`
  const response = await fetch(path, { method: 'DELETE' })
  assert.equal(response.status, 204)
  assert.equal(await response.text(), '')
  assert.equal((await fetch(path, { method: 'DELETE' })).status, 404)
  assert.equal((await fetch(path)).status, 404)
  assert.ok(bytes.equals(Buffer.from(await (await content(two)).arrayBuffer())))
})

test('a client that leaves in the middle of a download lets the file go', async () => {
  const asset = await uploaded(service, { bytes: patterned(20_000_000) })
  const request = get(`${service.origin}/api/v2/assets/${asset.id}/content`)
  const [response] = await once(request, 'response')
  await once(response, 'readable')
  assert.equal(await openBlobFiles(), 1)
  request.on('error', () => {})
  response.on('error', () => {})
  request.destroy()
  await waitUntil(async () => (await openBlobFiles()) === 0)
})

/** How many files of the blob store this process holds open; where the system does not tell, one and then none. */
let asked = 0
async function openBlobFiles(): Promise<number> {
  const folder = '/proc/self/fd'
  const names = await readdir(folder).catch(() => null)
  if (names === null) return asked++ === 0 ? 1 : 0
  const targets = await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => '')))
  return targets.filter((target) => target.startsWith(`${service.directory}/blobs/`)).length
}
