/** Assets through the whole service: uploads, what they refuse, and records by hash. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { blake3 } from 'hash-wasm'
import { addForeignAsset } from '../../support/app/foreign-asset.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { assetRef, CheckedClient, node, refused, type WireAsset } from '../../support/clients/checked-client.ts'
import { sendRaw } from '../../support/clients/raw-http.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const UNKNOWN_ID = '0199b3f4-1d2e-4a3b-8c4d-5e6f70819234'

let service: TestApp
let client: CheckedClient
const engine = createFakeEngine()
before(async () => {
  service = await startTestApp({ settings: { maxUpload: '2000000B' }, overrides: { engine } })
  client = new CheckedClient(service.url)
})
after(() => service[Symbol.asyncDispose]())

const content = (id: string, headers: Record<string, string> = {}) =>
  client.call(`/api/v2/assets/${id}/content`, { headers })
const fromHash = (body: object) =>
  client.call('/api/v2/assets/from-hash', { method: 'POST', body: JSON.stringify(body) })
const remove = (id: string) => client.call(`/api/v2/assets/${id}`, { method: 'DELETE' })
const head = (path: string) => client.call(path, { method: 'HEAD' })

async function blobFiles(): Promise<string[]> {
  const entries = await readdir(join(service.dataDir, 'blobs'), { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => entry.name)
}

describe('an upload', () => {
  test('answers with the whole record: a UUID, the hash of the bytes, an absolute URL', async () => {
    const bytes = randomBytes(70_000)
    const answer = await client.upload('photo.png', bytes)
    assert.equal(answer.status, 201)
    const asset = answer.json as WireAsset
    assert.match(asset.id, UUID)
    assert.equal(asset.hash, `blake3:${await blake3(bytes)}`)
    assert.deepEqual(
      [asset.size_bytes, asset.content_type, asset.file_path, asset.created_new, asset.expires_at],
      [70_000, 'image/png', 'photo.png', true, null],
    )
    assert.equal(asset.url, `${client.url}/api/v2/assets/${asset.id}/content`)
    assert.ok(!('job_id' in asset))
    const { created_new, url_expires_at, ...record } = (await client.call(`/api/v2/assets/${asset.id}`)).json
    assert.equal(created_new, undefined)
    assert.ok(Date.parse(url_expires_at) > Date.now())
    const { created_new: _, url_expires_at: __, ...sent } = asset
    assert.deepEqual(record, sent)
    assert.deepEqual((await content(asset.id)).bytes, bytes)
  })

  test('of bytes that are there already is 200 and not new, with the same id for the same path', async () => {
    const first = await client.uploaded('same.png', 'the same bytes')
    const again = await client.upload('same.png', 'the same bytes')
    assert.deepEqual([again.status, again.json.created_new, again.json.id], [200, false, first.id])
    const other = await client.upload('other.png', 'the same bytes')
    assert.deepEqual([other.status, other.json.created_new], [200, false])
    assert.notEqual(other.json.id, first.id)
    assert.equal(other.json.hash, first.hash)
  })

  test('with an expected hash in any case is compared; a wrong one is 409 and leaves nothing', async () => {
    const hash = await blake3('expected')
    for (const [path, expected] of [
      ['a', `blake3:${hash}`],
      ['b', `BLAKE3:${hash.toUpperCase()}`],
    ]) {
      await client.uploaded(`${path}.png`, 'expected', { fields: { expected_hash: expected } })
    }
    const before = await blobFiles()
    const wrong = await client.upload('c.png', 'something else', { fields: { expected_hash: `blake3:${hash}` } })
    refused(wrong, 409, 'hash_mismatch')
    assert.deepEqual(await blobFiles(), before)
    const unknown = `blake3:${await blake3('something else')}`
    assert.equal((await head(`/api/v2/assets/by-hash/${unknown}`)).status, 404)
    for (const expected of [hash, 'blake3:', 'md5:abc', '', `blake3:${hash}0`]) {
      refused(await client.upload('c.png', 'expected', { fields: { expected_hash: expected } }), 422, 'invalid_request')
    }
  })

  test('keeps names in any script, with slashes, and repeated tags', async () => {
    for (const name of ['input/Фото 猫 é.png', 'a/b/c d.png', 'it\'s "quoted" 100%.png', 'ü'.repeat(100), '.hidden']) {
      const asset = await client.uploaded(name, name, { fields: { tags: ['one', 'two', 'one'] } })
      assert.equal(asset.file_path, name)
      assert.equal((await content(asset.id)).status, 200)
    }
  })

  test('may be chunked, in any slices', async () => {
    const bytes = randomBytes(100_000)
    const body = form({ content_type: 'image/png', file_path: 'chunked.png' }, bytes)
    const answer = await new Promise<{ status: number; text: string }>((resolve, reject) => {
      const headers = { 'content-type': 'multipart/form-data; boundary=XX', 'transfer-encoding': 'chunked' }
      const outgoing = request(`${client.url}/api/v2/assets`, { method: 'POST', headers }, (response) => {
        response.setEncoding('utf8')
        let text = ''
        response.on('data', (part: string) => {
          text += part
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      })
      outgoing.on('error', reject)
      for (let at = 0; at < body.length; at += 777) outgoing.write(body.subarray(at, at + 777))
      outgoing.end()
    })
    assert.equal(answer.status, 201, answer.text)
    assert.deepEqual((await content(JSON.parse(answer.text).id)).bytes, bytes)
  })

  test('whose form is wrong is 422 and leaves nothing', async () => {
    const before = await blobFiles()
    const fields = { content_type: 'image/png', file_path: 'wrong.png' }
    const wrong: [name: string, body: Buffer | string][] = [
      ['the file comes first, without its fields', Buffer.concat([part('file', 'x', 'x.png'), part('tags', 't'), END])],
      [
        'a second file',
        Buffer.concat([
          part('file', 'x', 'x'),
          part('content_type', 'a/b'),
          part('file_path', 'p'),
          part('file', 'y', 'y'),
          END,
        ]),
      ],
      ['no file', Buffer.concat([part('content_type', 'a/b'), part('file_path', 'p'), END])],
      ['no content_type', form({ file_path: 'p' }, 'x')],
      ['no file_path', form({ content_type: 'a/b' }, 'x')],
      ['no part at all', END],
      ['a bad media type', form({ ...fields, content_type: 'png' }, 'x')],
      [
        'a repeated field',
        Buffer.concat([
          part('file_path', 'a'),
          part('file_path', 'b'),
          part('content_type', 'a/b'),
          part('file', 'x', 'x'),
          END,
        ]),
      ],
      ...['59', '604801', '0', '-60', '60.5', '1e3', 'soon', ''].map((expires_in): [string, Buffer] => [
        `expires_in ${expires_in}`,
        form({ ...fields, expires_in }, 'x'),
      ]),
    ]
    for (const [name, body] of wrong) {
      const headers = { 'content-type': 'multipart/form-data; boundary=XX' }
      const answer = await client.call('/api/v2/assets', { method: 'POST', headers, body })
      assert.deepEqual([name, answer.status, answer.json.error.code], [name, 422, 'invalid_request'])
    }
    assert.deepEqual(await blobFiles(), before)
  })

  test('over the limit is 413, early, and leaves nothing', async () => {
    const before = await blobFiles()
    refused(await client.upload('large.png', Buffer.alloc(2_000_001)), 413, 'payload_too_large')
    const start = [
      'POST /api/v2/assets HTTP/1.1',
      `Host: ${new URL(client.url).host}`,
      'Content-Type: multipart/form-data; boundary=XX',
      'Content-Length: 90000000000',
      '',
      '',
    ].join('\r\n')
    const early = await sendRaw({ url: client.url, bytes: start, halfClose: false })
    assert.equal(early?.status, 413)
    assert.equal(JSON.parse(early?.body ?? '').error.code, 'payload_too_large')
    assert.deepEqual(await blobFiles(), before)
    assert.equal((await client.upload('most.png', Buffer.alloc(2_000_000))).status, 201)
  })

  test('with a path that leads anywhere else is refused', async () => {
    const wrong = [
      '/etc/passwd',
      '../x',
      'a/../b',
      'input/../checkpoints/x',
      'input/../../etc',
      '..',
      '.',
      './a',
      'a//b',
      'a/',
      'a\\b',
      'C:\\x',
      'c:x',
      'input',
      'models',
      'output',
      'a\u0000b',
      'a\nb',
      '\u202egnp.exe',
      'x'.repeat(1025),
    ]
    for (const path of wrong) refused(await client.upload(path, 'x'), 422, 'invalid_request')
  })
})

describe('bytes that the caller has', () => {
  test('are found by hash with a raw and with an escaped colon; unknown, foreign and malformed hashes are 404', async () => {
    const { hash } = await client.uploaded('known.png', 'known bytes')
    const hex = hash.replace('blake3:', '')
    for (const spelling of [hash, `blake3%3A${hex}`, `blake3%3a${hex}`, `BLAKE3:${hex.toUpperCase()}`]) {
      const answer = await head(`/api/v2/assets/by-hash/${spelling}`)
      assert.deepEqual([answer.status, answer.text], [200, ''], spelling)
    }
    const foreign = `blake3:${await blake3('theirs')}`
    await addForeignAsset(service, foreign)
    for (const spelling of [
      foreign,
      `blake3:${'0'.repeat(64)}`,
      hex,
      'blake3:',
      `blake3:${hex}0`,
      `md5:${hex}`,
      'x',
      '%00',
    ]) {
      const answer = await head(`/api/v2/assets/by-hash/${spelling}`)
      assert.deepEqual([answer.status, answer.text], [404, ''], spelling)
    }
    refused(await fromHash({ hash: foreign, file_path: 'x.png' }), 404, 'blob_not_found')
    refused(await fromHash({ hash: `blake3:${'0'.repeat(64)}` }), 404, 'blob_not_found')
  })

  test('get a second record by hash: the same one for the same path, a new one for another', async () => {
    const asset = await client.uploaded('twice.png', 'twice')
    const same = await fromHash({ hash: asset.hash, file_path: 'twice.png' })
    assert.deepEqual([same.status, same.json.id, same.json.created_new], [200, asset.id, false])
    const other = await fromHash({
      hash: asset.hash.toUpperCase().replace('BLAKE3', 'blake3'),
      file_path: 'thrice.png',
    })
    assert.deepEqual([other.status, other.json.created_new], [201, false])
    assert.notEqual(other.json.id, asset.id)
    assert.equal((await fromHash({ hash: asset.hash, file_path: 'thrice.png' })).json.id, other.json.id)
    const tagged = await fromHash({ hash: asset.hash, file_path: 'twice.png', tags: ['t'] })
    assert.deepEqual([tagged.status, tagged.json.id === asset.id], [201, false])
    assert.equal((await content(other.json.id)).text, 'twice')
    const nameless = await fromHash({ hash: asset.hash })
    assert.deepEqual([nameless.status, nameless.json.file_path], [201, null])
    assert.equal((await content(nameless.json.id)).status, 200)
  })

  test('a from-hash that cannot be read is refused', async () => {
    const { hash } = await client.uploaded('known.png', 'known bytes')
    for (const body of ['', '{', '[]', 'null']) {
      refused(await client.call('/api/v2/assets/from-hash', { method: 'POST', body }), 400, 'invalid_request')
    }
    const padded = ' '.repeat(70_000)
    const large = await client.call('/api/v2/assets/from-hash', { method: 'POST', body: padded })
    refused(large, 413, 'payload_too_large')
    const wrong: object[] = [
      {},
      { hash: null },
      { hash: 5 },
      { hash: 'abc' },
      { hash: hash.slice(0, -1) },
      { hash, file_path: '../x' },
      { hash, file_path: 5 },
      { hash, tags: 'x' },
      { hash, tags: [5] },
      { hash, tags: [''] },
      { hash, expires_in: 59 },
      { hash, expires_in: 604_801 },
      { hash, expires_in: '60' },
      { hash, expires_in: 60.5 },
    ]
    for (const body of wrong) refused(await fromHash(body), 422, 'invalid_request')
  })
})

describe('an id that is nobody’s asset', () => {
  test('is 404 on every operation and a missing asset in a workflow', async () => {
    const mine = await client.uploaded('mine.png', 'mine')
    const foreign = await addForeignAsset(service, mine.hash)
    const wrong = [foreign, UNKNOWN_ID, mine.id.toUpperCase(), `${mine.id}0`, 'x', '..%2F..%2Fetc', '%7B%7D', mine.hash]
    for (const id of wrong) {
      refused(await client.call(`/api/v2/assets/${id}`), 404, 'not_found')
      refused(await content(id), 404, 'not_found')
      refused(await remove(id), 404, 'not_found')
      const given = decodeURIComponent(id)
      const answer = await client.submit({ workflow: { '1': node('FakeSource', { image: assetRef(given) }) } })
      assert.deepEqual(refused(answer, 422, 'missing_asset'), { missing_ids: [given] })
    }
  })
})

const END = Buffer.from('--XX--\r\n')

function part(name: string, value: string | Uint8Array, fileName?: string): Buffer {
  const file = fileName === undefined ? '' : `; filename="${fileName}"`
  const start = `--XX\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`
  return Buffer.concat([Buffer.from(start), Buffer.from(value), Buffer.from('\r\n')])
}

function form(fields: Readonly<Record<string, string>>, file: string | Uint8Array): Buffer {
  const parts = Object.entries(fields).map(([name, value]) => part(name, value))
  return Buffer.concat([...parts, part('file', file, 'file'), END])
}
