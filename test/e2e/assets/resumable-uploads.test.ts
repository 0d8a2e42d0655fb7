/** Uploads that can be continued, as the protocol tus 1.0 has it, over the whole service. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { request as openRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import * as tus from 'tus-js-client'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { RunClient } from '../../../src/cli/server/client.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { type Answer, type CallOptions, call } from '../../support/clients/call.ts'
import { checkAgainstSpec } from '../../support/clients/check-against-spec.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { openFaultProxy } from '../../support/network/fault-proxy.ts'
import { GIVE_UP_MS, waitUntil } from '../../support/wait-until.ts'

const blake3 = await openBlake3()
const PATH = '/api/v2/uploads'
const MIB = 1024 * 1024
const PART = { 'content-type': 'application/offset+octet-stream' }

describe('a resumable upload', () => {
  let app: TestApp
  before(async () => {
    app = await startTestApp({ overrides: { engine: createFakeEngine() }, settings: { maxUpload: '64mib' } })
  })
  after(() => app[Symbol.asyncDispose]())

  const ask = (path: string, { headers = {}, ...options }: CallOptions): Promise<Answer> =>
    call(app.url, path, { ...options, headers: { 'tus-resumable': '1.0.0', ...headers } })

  const create = (length: number, options: { name?: string; headers?: Record<string, string>; body?: Buffer } = {}) =>
    ask(PATH, {
      method: 'POST',
      headers: {
        'upload-length': String(length),
        'upload-metadata': `filename ${Buffer.from(options.name ?? 'a.bin').toString('base64')}`,
        'content-length': String(options.body?.length ?? 0),
        ...options.headers,
      },
      ...(options.body && { body: options.body }),
    })

  async function begin(length: number, name?: string): Promise<string> {
    const created = await create(length, name === undefined ? {} : { name })
    assert.equal(created.status, 201, created.text)
    return String(created.headers.location)
  }

  const head = (path: string) => ask(path, { method: 'HEAD' })
  const patch = (path: string, offset: number, body: Buffer, headers: Record<string, string> = {}) =>
    ask(path, { method: 'PATCH', headers: { ...PART, 'upload-offset': String(offset), ...headers }, body })

  async function assetOf(answer: Answer) {
    const asset = await call(app.url, `/api/v2/assets/${answer.headers['upload-asset']}`)
    assert.equal(asset.status, 200, asset.text)
    return asset.json
  }

  test('says what it speaks to whoever asks', async () => {
    const answer = await call(app.url, PATH, { method: 'OPTIONS' })
    assert.equal(answer.status, 204)
    assert.equal(answer.headers['tus-version'], '1.0.0')
    assert.equal(answer.headers['tus-extension'], 'creation,creation-with-upload,termination,expiration,checksum')
    assert.equal(answer.headers['tus-checksum-algorithm'], 'sha1,sha256,md5')
    assert.equal(answer.headers['tus-max-size'], String(64 * MIB))
    const mute = await call(app.url, PATH, { method: 'POST' })
    assert.deepEqual(
      [mute.status, mute.json.error.code, mute.headers['tus-version']],
      [412, 'unsupported_version', '1.0.0'],
    )
    checkAgainstSpec('POST', PATH, 412, mute.json)
  })

  test('in pieces becomes the asset that a plain upload of the same bytes is', async () => {
    const bytes = randomBytes(3 * MIB + 5)
    const path = await begin(bytes.length, 'input/pieces.bin')
    const asked = await head(path)
    assert.deepEqual(
      [asked.status, asked.headers['upload-offset'], asked.headers['upload-length']],
      [200, '0', String(bytes.length)],
    )
    assert.equal(asked.headers['cache-control'], 'no-store')
    assert.match(String(asked.headers['upload-metadata']), /^filename /)
    assert.ok(Date.parse(String(asked.headers['upload-expires'])) > Date.now())
    const first = await patch(path, 0, bytes.subarray(0, MIB))
    assert.deepEqual(
      [first.status, first.headers['upload-offset'], first.headers['upload-asset']],
      [204, String(MIB), undefined],
    )
    const stale = await patch(path, 0, bytes.subarray(0, MIB))
    assert.deepEqual(
      [stale.status, stale.json.error.code, stale.json.error.details],
      [409, 'offset_mismatch', { offset: MIB }],
    )
    const last = await patch(path, MIB, bytes.subarray(MIB))
    assert.equal(last.status, 204, last.text)
    const asset = await assetOf(last)
    assert.equal(asset.hash, `blake3:${blake3.hash(bytes)}`)
    assert.equal(asset.file_path ?? asset.name, 'input/pieces.bin')
    const whole = await call(app.url, path)
    checkAgainstSpec('GET', `${PATH}/{id}`, 200, whole.json)
    assert.deepEqual([whole.json.offset, whole.json.asset_id], [bytes.length, asset.id])
    assert.equal((await head(path)).headers['upload-asset'], asset.id)
    const again = await patch(path, bytes.length, Buffer.alloc(0))
    assert.equal(again.status, 204)
    const more = await patch(path, bytes.length, Buffer.alloc(1))
    assert.deepEqual([more.status, more.json.error.code], [413, 'payload_too_large'])
    const form = new FormData()
    form.set('content_type', 'application/octet-stream')
    form.set('file_path', 'input/pieces.bin')
    form.set('file', new Blob([bytes]))
    const plain = await fetch(`${app.url}/api/v2/assets`, { method: 'POST', body: form })
    assert.deepEqual([plain.status, ((await plain.json()) as { id: string }).id], [200, asset.id])
  })

  test('may begin with bytes, be empty, and be given up', async () => {
    const bytes = randomBytes(70_000)
    const at = await create(bytes.length, { body: bytes, headers: PART })
    assert.equal(at.status, 201, at.text)
    assert.equal((await assetOf(at)).hash, `blake3:${blake3.hash(bytes)}`)
    const part = await create(bytes.length, { body: bytes.subarray(0, 100), headers: PART })
    assert.deepEqual([part.status, part.headers['upload-offset']], [201, '100'])
    const empty = await create(0, { name: 'empty.txt' })
    assert.equal((await assetOf(empty)).size_bytes, 0)
    const path = String(part.headers.location)
    assert.equal((await ask(path, { method: 'DELETE' })).status, 204)
    assert.equal((await head(path)).status, 404)
    const gone = await patch(path, 100, bytes.subarray(100))
    assert.deepEqual([gone.status, gone.json.error.code], [404, 'not_found'])
  })

  test('keeps nothing of a piece that was damaged on its way', async () => {
    const bytes = randomBytes(100_000)
    const path = await begin(bytes.length)
    const sum = (of: Buffer, name = 'sha1') => ({
      'upload-checksum': `${name} ${createHash(name).update(of).digest('base64')}`,
    })
    const bad = await patch(path, 0, bytes, sum(bytes.subarray(1)))
    assert.deepEqual([bad.status, bad.json.error.code], [460, 'checksum_mismatch'])
    assert.equal((await head(path)).headers['upload-offset'], '0')
    assert.equal((await patch(path, 0, bytes.subarray(0, 10), sum(bytes.subarray(0, 10), 'sha256'))).status, 204)
    assert.equal((await patch(path, 10, bytes, { 'upload-checksum': 'crc9 AAAA' })).status, 400)
    const end = await patch(path, 10, bytes.subarray(10), sum(bytes.subarray(10), 'md5'))
    assert.equal((await assetOf(end)).hash, `blake3:${blake3.hash(bytes)}`)
  })

  test('is refused before its bytes when it cannot be', async () => {
    const metadata = (text: string) => ({ headers: { 'upload-metadata': text } })
    const encode = (text: string) => Buffer.from(text).toString('base64')
    for (const [answer, status, code] of [
      [await create(65 * MIB), 413, 'payload_too_large'],
      [await create(10, { name: '../x' }), 422, 'invalid_request'],
      [await create(10, metadata('')), 422, 'invalid_request'],
      [await create(10, metadata('filename !')), 400, 'invalid_request'],
      [await create(10, { headers: { 'upload-length': '-1' } }), 400, 'invalid_request'],
      [await create(10, { headers: { 'upload-concat': 'partial' } }), 400, 'invalid_request'],
      [await create(10, { body: Buffer.alloc(3) }), 415, 'unsupported_media_type'],
      [await create(10, metadata(`filename ${encode('models/x/a.safetensors')}`)), 422, 'invalid_request'],
    ] as const) {
      assert.deepEqual([answer.status, answer.json?.error.code], [status, code], answer.text)
      checkAgainstSpec('POST', PATH, status, answer.json)
    }
    const path = await begin(10)
    const other = await patch(path, 0, Buffer.alloc(3), { 'content-type': 'text/plain' })
    assert.deepEqual([other.status, other.json.error.code], [415, 'unsupported_media_type'])
    const more = await patch(path, 0, Buffer.alloc(11))
    assert.deepEqual([more.status, more.json.error.code], [413, 'payload_too_large'])
    assert.equal((await head(`${PATH}/${'0'.repeat(36)}`)).status, 404)
    assert.equal((await head(`${PATH}/none`)).status, 404)
  })

  test('whose bytes are not those of its hash is refused for good and forgotten', async () => {
    const bytes = randomBytes(1000)
    const hash = `blake3:${blake3.hash(randomBytes(10))}`
    const metadata = `filename YQ==,expected_hash ${Buffer.from(hash).toString('base64')}`
    const path = String((await create(bytes.length, { headers: { 'upload-metadata': metadata } })).headers.location)
    const refused = await patch(path, 0, bytes)
    assert.deepEqual([refused.status, refused.json.error.details.field], [422, 'expected_hash'])
    assert.equal((await head(path)).status, 404)
  })

  test('takes one request at a time, and keeps what came before a line broke', async () => {
    const bytes = randomBytes(2 * MIB)
    const path = await begin(bytes.length)
    const { hostname, port } = new URL(app.url)
    const slow = openRequest({
      ...{ host: hostname, port, path, method: 'PATCH' },
      headers: { 'tus-resumable': '1.0.0', ...PART, 'upload-offset': '0', 'content-length': bytes.length },
    })
    slow.on('error', () => {})
    let sent = MIB
    const write = (from: number, to: number) => new Promise((resolve) => slow.write(bytes.subarray(from, to), resolve))
    await write(0, sent)
    const second = await waitUntil(async () => {
      // One that stands still would give way.
      await write(sent, ++sent)
      const answer = await patch(path, bytes.length - 1, bytes.subarray(0, 1))
      return answer.status === 423 ? answer : null
    })
    assert.deepEqual([second.json.error.code, second.headers['retry-after']], ['upload_locked', '2'])
    slow.destroy()
    const offset = await waitUntil(async () => {
      const asked = await head(path)
      return Number(asked.headers['upload-offset']) === sent ? sent : null
    })
    // The service may still be writing what it had of the broken request.
    const end = await waitUntil(async () => {
      const answer = await patch(path, offset, bytes.subarray(offset))
      return answer.status === 423 ? null : answer
    })
    assert.equal((await assetOf(end)).hash, `blake3:${blake3.hash(bytes)}`)
  })

  test('goes on after a restart, whose process has not seen its beginning', async () => {
    const bytes = randomBytes(2 * MIB)
    const path = await begin(bytes.length, 'restart.bin')
    await patch(path, 0, bytes.subarray(0, MIB + 1))
    app = await app.restart()
    assert.equal((await head(path)).headers['upload-offset'], String(MIB + 1))
    const end = await patch(path, MIB + 1, bytes.subarray(MIB + 1))
    assert.equal((await assetOf(end)).hash, `blake3:${blake3.hash(bytes)}`)
  })

  test('by the client of the protocol, in pieces and as a whole', async () => {
    const bytes = randomBytes(MIB + 3)
    for (const chunkSize of [Number.POSITIVE_INFINITY, 300_000]) {
      const assetId = await new Promise<string>((resolve, reject) => {
        const upload = new tus.Upload(bytes, {
          endpoint: `${app.url}${PATH}`,
          chunkSize,
          metadata: { filename: `client-${chunkSize}.bin`, filetype: 'application/x-test' },
          onError: reject,
          onSuccess: ({ lastResponse }) => resolve(lastResponse.getHeader('Upload-Asset') ?? ''),
        })
        upload.start()
      })
      const asset = await call(app.url, `/api/v2/assets/${assetId}`)
      assert.deepEqual(
        [asset.json.hash, asset.json.content_type],
        [`blake3:${blake3.hash(bytes)}`, 'application/x-test'],
      )
    }
  })

  test('by the command line goes on after the line was cut', async () => {
    await using proxy = await openFaultProxy({ target: Number(new URL(app.url).port) })
    const folder = await mkdtemp(join(tmpdir(), 'atelier-send-'))
    const bytes = randomBytes(8 * MIB)
    const file = join(folder, 'weights.bin')
    await writeFile(file, bytes)
    const unfinished = (await readdir(join(app.dataDir, 'blobs', 'uploads'))).length
    const client = new RunClient({ baseUrl: `http://127.0.0.1:${proxy.port}`, token: null, resumableFromBytes: MIB })
    proxy.set({ kind: 'open', delayMs: 1 })
    const sending = client.upload(file, AbortSignal.timeout(GIVE_UP_MS))
    // Once the service has begun to write it down.
    await waitUntil(async () => {
      const names = await readdir(join(app.dataDir, 'blobs', 'uploads')).catch(() => [])
      return names.length > unfinished
    })
    proxy.drop()
    const { info } = (await sending) as { info: { id: string } }
    const asset = await call(app.url, `/api/v2/assets/${info.id}`)
    assert.equal(asset.json.hash, `blake3:${blake3.hash(bytes)}`)
    await rm(folder, { recursive: true })
  })
})
