/** Assets through the whole service: records, bytes, ranges, references in workflows, retention and removal. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { blake3 } from 'hash-wasm'
import sharp from 'sharp'
import type { Answer } from '../support/call.ts'
import { assetRef, CheckedClient, node, refused, type WireAsset } from '../support/checked-client.ts'
import { createFakeEngine } from '../support/fake-engine.ts'
import { sendRaw } from '../support/raw-http.ts'
import { startTestApp, type TestApp } from '../support/start-app.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const UNKNOWN_ID = '0199b3f4-1d2e-4a3b-8c4d-5e6f70819234'
const DAY_MS = 86_400_000
let aheadMs = 0
const clock = { now: () => new Date(Date.now() + aheadMs) }

let service: TestApp
let client: CheckedClient
const engine = createFakeEngine()
before(async () => {
  service = await startTestApp({ settings: { maxUpload: '2000000B' }, overrides: { engine, clock } })
  client = new CheckedClient(service.url)
  await service.app.store.accounts.put({ id: 'somebody', maxRunning: 1, maxQueued: 10 })
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

/** An asset of another account over bytes that are really there. */
async function foreignAsset(hash: string): Promise<string> {
  const id = crypto.randomUUID()
  const fields = { contentType: 'image/png', filePath: 'theirs.png', tags: [], createdAt: new Date(), expiresAt: null }
  await service.app.store.assets.mint({
    asset: { id, accountId: 'somebody', hash: hash.replace('blake3:', ''), sizeBytes: 1, jobId: null, ...fields },
    keyClaim: null,
    mustOwnHash: false,
  })
  return id
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
      [
        'the file comes first',
        Buffer.concat([part('file', 'x', 'x.png'), part('content_type', 'a/b'), part('file_path', 'p'), END]),
      ],
      [
        'a field follows the file',
        Buffer.concat([
          part('content_type', 'a/b'),
          part('file_path', 'p'),
          part('file', 'x', 'x'),
          part('tags', 't'),
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
    await foreignAsset(foreign)
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
    assert.deepEqual([other.status, other.json.created_new], [201, true])
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

describe('content', () => {
  test('comes whole or exactly as the range says', async () => {
    const bytes = Buffer.from('0123456789')
    const { id } = await client.uploaded('range.txt', bytes, { fields: { content_type: 'text/plain' } })
    const whole = await content(id)
    assert.deepEqual(
      [
        whole.status,
        whole.text,
        whole.headers['accept-ranges'],
        whole.headers['content-length'],
        whole.headers['content-type'],
      ],
      [200, '0123456789', 'bytes', '10', 'text/plain'],
    )
    const slices: [string, string, string][] = [
      ['bytes=0-0', '0', '0-0'],
      ['bytes=2-4', '234', '2-4'],
      ['bytes=7-', '789', '7-9'],
      ['bytes=-3', '789', '7-9'],
      ['bytes=-100', '0123456789', '0-9'],
      ['bytes=5-1000', '56789', '5-9'],
      ['bytes=0-', '0123456789', '0-9'],
    ]
    for (const [range, text, span] of slices) {
      const answer = await content(id, { range })
      assert.deepEqual(
        [range, answer.status, answer.text, answer.headers['content-range'], answer.headers['content-length']],
        [range, 206, text, `bytes ${span}/10`, String(text.length)],
      )
      const asked = await client.call(`/api/v2/assets/${id}/content`, { method: 'HEAD', headers: { range } })
      assert.deepEqual([asked.status, asked.text, asked.headers['content-range']], [206, '', `bytes ${span}/10`])
    }
    for (const range of ['bytes=10-', 'bytes=10-20', 'bytes=-0']) {
      const answer = await content(id, { range })
      refused(answer, 416, 'invalid_request')
      assert.equal(answer.headers['content-range'], 'bytes */10')
    }
    for (const range of ['bytes=4-2', 'bytes=a-b', 'items=0-1', 'bytes=0-1,3-4', 'bytes', '']) {
      assert.deepEqual([(await content(id, { range })).status, range], [200, range])
    }
    const asked = await head(`/api/v2/assets/${id}/content`)
    assert.deepEqual([asked.status, asked.text, asked.headers['content-length']], [200, '', '10'])
  })

  test('of active types is only ever downloaded', async () => {
    for (const type of ['text/html', 'image/svg+xml', 'application/xhtml+xml', 'text/HTML; charset=utf-8']) {
      const { id } = await client.uploaded('page', `<script>${type}</script>`, { fields: { content_type: type } })
      assert.match(String((await content(id)).headers['content-disposition']), /^attachment/, type)
    }
  })

  test('whose bytes are gone is output_unavailable, and says that retrying cannot help', async () => {
    const asset = await client.uploaded('lost.png', 'lost bytes')
    const name = asset.hash.replace('blake3:', '')
    const entries = await readdir(join(service.dataDir, 'blobs'), { recursive: true, withFileTypes: true })
    const file = entries.find((entry) => entry.isFile() && entry.name.includes(name.slice(8)))
    assert.ok(file !== undefined, 'the bytes are not where they were looked for')
    await rm(join(file.parentPath, file.name))
    const answer = await content(asset.id)
    refused(answer, 404, 'output_unavailable')
    assert.match(answer.json.error.message, /again|retry/i)
    assert.equal((await client.call(`/api/v2/assets/${asset.id}`)).status, 200)
    assert.equal((await head(`/api/v2/assets/by-hash/${asset.hash}`)).status, 404)
    assert.ok([200, 201].includes((await client.upload('lost.png', 'lost bytes')).status))
    assert.equal((await content(asset.id)).text, 'lost bytes')
  })
})

describe('an id that is nobody’s asset', () => {
  test('is 404 on every operation and a missing asset in a workflow', async () => {
    const mine = await client.uploaded('mine.png', 'mine')
    const foreign = await foreignAsset(mine.hash)
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

describe('a reference in a workflow', () => {
  test('is replaced wherever it stands, and the bytes reach the engine', async () => {
    const asset = await client.uploaded('photos/in.JPG', 'the picture', { fields: { content_type: 'image/jpeg' } })
    const nested = [[assetRef(asset.id)], { deep: [{ deeper: assetRef(asset.id) }] }]
    const hinted = {
      __type: 'core/ASSET',
      info: { id: asset.id, hash: `blake3:${'0'.repeat(64)}`, file_path: 'lie.png' },
    }
    const job = await client.run({ '1': node('FakeSource', { image: assetRef(asset.id), nested, hinted }) })
    assert.equal(job.status, 'succeeded')
    const name = `${asset.hash.replace('blake3:', '')}.jpg`
    const { workflow } = (await client.call(`/api/v2/jobs/${job.id}/workflow`)).json
    assert.deepEqual(workflow['1'].inputs, {
      image: name,
      nested: [[name], { deep: [{ deeper: name }] }],
      hinted: name,
    })
    const run = engine.runs.find(({ jobId }) => jobId === job.id)
    const chunks: Uint8Array[] = []
    for await (const chunk of run?.inputs.get(name)?.read() ?? []) chunks.push(chunk)
    assert.equal(Buffer.concat(chunks).toString(), 'the picture')
  })

  test('by hash alone is accepted; one that is malformed or unknown is never forwarded', async () => {
    const asset = await client.uploaded('by-hash.png', 'by hash')
    const byHash = { __type: 'core/ASSET', info: { hash: asset.hash } }
    assert.equal((await client.run({ '1': node('FakeSource', { image: byHash }) })).status, 'succeeded')
    const runs = engine.runs.length
    const malformed: unknown[] = [
      { __type: 'core/ASSET' },
      { __type: 'core/ASSET', info: null },
      { __type: 'core/ASSET', info: 'text' },
      { __type: 'core/ASSET', info: asset.id },
      { __type: 'core/ASSET', info: [] },
      { __type: 'core/ASSET', info: {} },
      { __type: 'core/ASSET', info: { id: '' } },
      { __type: 'core/ASSET', info: { id: null } },
      { __type: 'core/ASSET', info: { id: 5 } },
      { __type: 'core/ASSET', info: { file_path: 'by-hash.png' } },
      { __type: 'core/ASSET', info: { hash: `blake3:${'0'.repeat(64)}` } },
      { __type: 'core/ASSET', info: { id: UNKNOWN_ID, hash: asset.hash } },
    ]
    for (const reference of malformed) {
      for (const input of [reference, [reference], { a: { b: [1, [reference]] } }]) {
        const workflow = { '1': node('FakeSource', { good: assetRef(asset.id), input }), '2': node('FakeSave') }
        refused(await client.submit({ workflow }), 422, 'missing_asset')
      }
    }
    assert.equal(engine.runs.length, runs)
  })

  test('may be another job’s output', async () => {
    const made = await client.run({ '1': node('FakeSave', { text: 'made' }) })
    const [output] = made.outputs
    assert.equal((await client.run({ '1': node('FakeSource', { image: assetRef(output.id) }) })).status, 'succeeded')
    assert.equal(engine.runs.at(-1)?.inputs.get(`${output.hash.replace('blake3:', '')}.png`)?.sizeBytes, 5)
    const copy = await fromHash({ hash: output.hash, file_path: 'copy.png' })
    assert.equal(copy.status, 201)
    assert.ok(!('job_id' in copy.json))
  })

  test('keeps its bytes although the record is deleted while the job waits', async () => {
    const gate = await client.accepted({ '1': node('FakeGate') })
    const asset = await client.uploaded('short.png', 'short lived')
    const job = await client.accepted({ '1': node('FakeGate', { image: assetRef(asset.id) }) })
    assert.equal((await remove(asset.id)).status, 204)
    engine.openGate()
    engine.openGate()
    for (const { id } of [gate, job]) await client.untilStatus(id, 'succeeded')
  })
})

describe('a bare file name', () => {
  const load = (image: string) => ({ '1': node('FakeLoad', { image }) })
  const hashOf = async (image: string) => {
    const job = await client.run(load(image))
    assert.equal(job.status, 'succeeded')
    return `blake3:${engine.runs.find(({ jobId }) => jobId === job.id)?.inputs.get(image)?.hash}`
  }

  test('means the newest upload of that path, with or without its folder', async () => {
    const first = await client.uploaded('cat.png', 'first cat')
    assert.equal(await hashOf('cat.png'), first.hash)
    const second = await client.uploaded('cat.png', 'second cat')
    for (const name of ['cat.png', 'cat.png [input]', 'input/cat.png']) assert.equal(await hashOf(name), second.hash)
    const third = await client.uploaded('input/cat.png', 'third cat')
    assert.equal(await hashOf('cat.png'), third.hash)
    await client.uploaded('cat.png', 'first cat')
    assert.equal(await hashOf('cat.png'), first.hash)
    assert.equal((await fromHash({ hash: second.hash, file_path: 'cat.png' })).status, 200)
    assert.equal(await hashOf('cat.png'), second.hash)
  })

  test('never means an output of that name, which has a name of its own', async () => {
    const upload = await client.uploaded('fake_1_.png', 'uploaded')
    const made = await client.run({ '1': node('FakeSave', { text: 'newer output' }) })
    assert.equal(made.outputs[0].name, 'fake_1_.png')
    assert.equal(await hashOf('fake_1_.png'), upload.hash)
    assert.equal(await hashOf('fake_1_.png [output]'), made.outputs[0].hash)
    assert.equal((await remove(upload.id)).status, 204)
    const answer = await client.submit({ workflow: load('fake_1_.png') })
    refused(answer, 422, 'invalid_workflow')
    assert.deepEqual(answer.json.error.details.node_errors['1'], [
      { field: 'image', reason: 'custom_validation_failed', message: 'image - Invalid image file: fake_1_.png' },
    ])
  })

  test('that is unknown, foreign or leads elsewhere is refused by its node', async () => {
    await foreignAsset(`blake3:${'1'.repeat(64)}`)
    for (const image of ['nope.png', 'theirs.png', '../cat.png', '/etc/passwd', '', `${'1'.repeat(64)}.png`]) {
      refused(await client.submit({ workflow: load(image) }), 422, 'invalid_workflow')
    }
  })
})

describe('an output', () => {
  test('has an id of its own in every job, although names and bytes are the same', async () => {
    const workflow = { '1': node('FakeSave', { text: 'equal', count: 2 }) }
    const jobs = [await client.run(workflow), await client.run(workflow)]
    const ids = jobs.flatMap(({ outputs }) => outputs.map(({ id }) => id))
    assert.equal(new Set(ids).size, 4)
    for (const { id, outputs } of jobs) {
      for (const output of outputs) {
        const asset = (await client.call(`/api/v2/assets/${output.id}`)).json as WireAsset
        assert.deepEqual([asset.job_id, asset.hash, asset.file_path], [id, output.hash, output.name])
        assert.equal(asset.expires_at, jobs.find((job) => job.id === id)?.expires_at)
      }
    }
  })

  test('cannot be deleted while its job is kept; the refusal does not say why', async () => {
    const { id, outputs } = await client.run({ '1': node('FakeSave', { text: 'kept' }) })
    const answer = await remove(outputs[0].id)
    refused(answer, 409, 'asset_in_use')
    assert.ok(!answer.text.includes(id))
    assert.equal((await content(outputs[0].id)).text, 'kept0')
  })
})

describe('the end of a record', () => {
  test('by delete is 204, then 404; bytes that another record uses stay', async () => {
    const [first, second] = [await client.uploaded('d1.png', 'shared'), await client.uploaded('d2.png', 'shared')]
    const gone = await remove(first.id)
    assert.deepEqual([gone.status, gone.text], [204, ''])
    refused(await remove(first.id), 404, 'not_found')
    refused(await client.call(`/api/v2/assets/${first.id}`), 404, 'not_found')
    refused(await content(first.id), 404, 'not_found')
    assert.equal((await content(second.id)).text, 'shared')
    assert.equal((await head(`/api/v2/assets/by-hash/${second.hash}`)).status, 200)
    await remove(second.id)
    assert.equal((await head(`/api/v2/assets/by-hash/${second.hash}`)).status, 404)
    assert.equal((await client.upload('d1.png', 'shared')).status, 201)
  })

  test('by age comes when it was promised; sending the same again may only put it off', async () => {
    const lifeOf = ({ json }: Answer) => Math.round((Date.parse(json.expires_at) - clock.now().getTime()) / 1000)
    const short = await client.upload('life.png', 'life', { fields: { expires_in: '60' } })
    assert.ok(Math.abs(lifeOf(short) - 60) <= 2)
    assert.equal(short.json.url_expires_at, short.json.expires_at)
    const week = await client.upload('life.png', 'life', { fields: { expires_in: '604800' } })
    assert.ok(Math.abs(lifeOf(week) - 604_800) <= 2)
    const { hash } = week.json
    for (const again of [
      await client.upload('life.png', 'life', { fields: { expires_in: '60' } }),
      await fromHash({ hash, file_path: 'life.png', expires_in: 60 }),
    ]) {
      assert.deepEqual([again.json.id, again.json.expires_at], [week.json.id, week.json.expires_at])
    }
    aheadMs = 7 * DAY_MS + 5_000
    refused(await client.call(`/api/v2/assets/${week.json.id}`), 404, 'not_found')
    refused(await content(week.json.id), 404, 'not_found')
    aheadMs = 0
    assert.equal((await client.upload('life.png', 'life')).json.expires_at, null)
    const forever = await client.upload('life.png', 'life', { fields: { expires_in: '60' } })
    assert.equal(forever.json.expires_at, null)
  })
})

test('upload, reference, run, download: a picture comes back inverted', async () => {
  await using real = await startTestApp()
  const caller = new CheckedClient(real.url)
  const picture = await sharp({ create: { width: 16, height: 8, channels: 3, background: '#ff0000' } })
    .png()
    .toBuffer()
  const asset = await caller.uploaded('red.png', picture)
  for (const image of [assetRef(asset.id), 'red.png']) {
    const job = await caller.run({
      '1': node('LoadImage', { image }),
      '2': node('ImageInvert', { image: ['1', 0] }),
      '3': node('SaveImage', { images: ['2', 0], filename_prefix: 'inverted' }),
    })
    assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
    const { bytes } = await caller.call(`/api/v2/assets/${job.outputs[0].id}/content`)
    const { data, info } = await sharp(bytes).raw().toBuffer({ resolveWithObject: true })
    assert.deepEqual([info.width, info.height, ...data.subarray(0, 3)], [16, 8, 0, 255, 255])
    const second = await caller.run({
      '1': node('LoadImage', { image: assetRef(job.outputs[0].id) }),
      '2': node('SaveImage', { images: ['1', 0], filename_prefix: 'again' }),
    })
    assert.equal(second.status, 'succeeded')
  }
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
