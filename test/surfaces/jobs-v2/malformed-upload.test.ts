import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { patterned } from '../../contracts/assets/blob-store.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type AssetService, errorOf, openAssetService } from './asset-service.ts'

const B = 'frontier'
const part = (name: string, value: string, more = '') =>
  `--${B}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`
const CONTENT_TYPE = part('content_type', 'image/png')
const FILE_PATH = part('file_path', 'a.png')
const FILE = part('file', 'the bytes', '; filename="a.png"')
const NEW = part('file', 'other bytes', '; filename="b.png"')
const OTHER_HASH = `blake3:${'0'.repeat(64)}`
const END = `--${B}--\r\n`

function send(service: AssetService, body: string | Uint8Array, contentType = `multipart/form-data; boundary=${B}`) {
  const headers = contentType === '' ? undefined : { 'content-type': contentType }
  return fetch(`${service.origin}/api/v2/assets`, { method: 'POST', headers, body: Buffer.from(body) })
}

const FORMS: ReadonlyArray<readonly [name: string, body: string, status: number, contentType?: string]> = [
  ['a good form', CONTENT_TYPE + FILE_PATH + FILE + END, 201],
  [
    'a quoted boundary',
    CONTENT_TYPE + FILE_PATH + FILE + END,
    200,
    `Multipart/Form-Data; charset=utf-8; boundary="${B}"`,
  ],
  ['a preamble and an epilogue', `hello\r\n${CONTENT_TYPE}${FILE_PATH}${FILE}${END}bye`, 200],
  ['a file part without a file name', CONTENT_TYPE + FILE_PATH + part('file', 'the bytes') + END, 200],
  ['the file first', FILE + CONTENT_TYPE + FILE_PATH + END, 200],
  ['the file between the fields', CONTENT_TYPE + FILE + FILE_PATH + END, 200],
  ['an optional field after the file', CONTENT_TYPE + FILE_PATH + FILE + part('tags', 'late') + END, 200],
  ['the file first and nothing else', FILE + END, 422],
  ['a field that is missing after the file', FILE + CONTENT_TYPE + END, 422],
  ['a field that comes again after the file', CONTENT_TYPE + FILE_PATH + FILE + FILE_PATH + END, 422],
  ['another hash, told after the file', FILE + CONTENT_TYPE + FILE_PATH + part('expected_hash', OTHER_HASH) + END, 409],
  [
    'another hash, told after the file, for new bytes',
    NEW + CONTENT_TYPE + FILE_PATH + part('expected_hash', OTHER_HASH) + END,
    409,
  ],
  ['a bad path after the file', NEW + CONTENT_TYPE + part('file_path', '../a.png') + END, 422],
  ['a bad type after the file', NEW + FILE_PATH + part('content_type', 'nonsense') + END, 422],
  ['a bad lifetime after the file', NEW + CONTENT_TYPE + FILE_PATH + part('expires_in', '-1') + END, 422],
  ['an end after the file, before its fields', NEW + CONTENT_TYPE, 400],
  ['fields beyond all bounds after the file', NEW + part('note', 'x'.repeat(9000)) + END, 422],
  ['two files', CONTENT_TYPE + FILE_PATH + FILE + FILE + END, 422],
  ['two files with fields between them', FILE + CONTENT_TYPE + FILE_PATH + FILE + END, 422],
  ['another file part', CONTENT_TYPE + FILE_PATH + part('image', 'x', '; filename="a.png"') + END, 422],
  ['no file part', CONTENT_TYPE + FILE_PATH + END, 422],
  ['no part at all', END, 422],
  [
    'a part without a name',
    `--${B}\r\nContent-Disposition: form-data\r\n\r\nx\r\n${CONTENT_TYPE}${FILE_PATH}${FILE}${END}`,
    400,
  ],
  ['no boundary', CONTENT_TYPE + FILE_PATH + FILE + END, 422, 'multipart/form-data'],
  ['an empty boundary', CONTENT_TYPE + FILE_PATH + FILE + END, 422, 'multipart/form-data; boundary='],
  ['a huge boundary', CONTENT_TYPE, 422, `multipart/form-data; boundary=${'x'.repeat(300)}`],
  ['another multipart type', CONTENT_TYPE + FILE_PATH + FILE + END, 422, `multipart/mixed; boundary=${B}`],
  ['JSON', '{"file":"x"}', 422, 'application/json'],
  ['a url-encoded form', 'file=x&content_type=y', 422, 'application/x-www-form-urlencoded'],
  ['a boundary that never comes', CONTENT_TYPE + FILE_PATH + FILE + END, 400, 'multipart/form-data; boundary=other'],
  ['an end inside the fields', CONTENT_TYPE + FILE_PATH.slice(0, -4), 400],
  ['an end inside the file', (CONTENT_TYPE + FILE_PATH + FILE).slice(0, -6), 400],
  ['an end before the last boundary', CONTENT_TYPE + FILE_PATH + FILE, 400],
  ['an empty body', '', 400],
  ['a part without headers', `--${B}\r\n\r\n${END}`, 400],
  ['a preamble beyond all bounds', 'x'.repeat(3_000_000) + CONTENT_TYPE + FILE_PATH + FILE + END, 413],
  ['an epilogue beyond all bounds', CONTENT_TYPE + FILE_PATH + FILE + END + 'x'.repeat(3_000_000), 413],
]

test('every form gets its answer, and a refused one leaves nothing', async (t) => {
  await using service = await openAssetService()
  for (const [name, body, expected, contentType] of FORMS) {
    await t.test(name, async () => {
      const response = await send(service, body, contentType)
      const text = await response.text()
      assert.equal(response.status, expected, text)
      if (expected >= 400) assert.equal(typeof JSON.parse(text).error.code, 'string')
      assert.equal((await service.storedFiles()).length, 1)
      assert.deepEqual(service.defects, [])
    })
  }
})

test('a body without a Content-Type is 422', async () => {
  await using service = await openAssetService()
  const { status, code } = await errorOf(await send(service, CONTENT_TYPE, ''))
  assert.deepEqual([status, code], [422, 'invalid_request'])
})

test('whatever the body is, the answer is a refusal or a record, never a defect', async () => {
  await using service = await openAssetService()
  const pieces = [
    CONTENT_TYPE,
    FILE_PATH,
    FILE,
    END,
    `--${B}`,
    '\r\n',
    '\r\n\r\n',
    '--',
    'Content-Type: text/plain; charset=nonsense\r\n',
    '\u0000',
    '%',
  ]
  const body = fc.array(fc.oneof(fc.constantFrom(...pieces), fc.string({ maxLength: 20 })), { maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(body, async (parts) => {
      const response = await send(service, parts.join(''))
      await response.text()
      assert.ok([200, 201, 400, 413, 422].includes(response.status), String(response.status))
    }),
    { numRuns: 150 },
  )
  assert.deepEqual(service.defects, [])
})

/** Starts an upload of endless bytes and hands out the socket's side of it. */
function startEndless(service: AssetService, headers: Record<string, string> = {}) {
  const request = httpRequest(`${service.origin}/api/v2/assets`, {
    method: 'POST',
    headers: { 'content-type': `multipart/form-data; boundary=${B}`, ...headers },
  })
  request.write(
    `${CONTENT_TYPE}${FILE_PATH}--${B}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n`,
  )
  return request
}

test('a client that leaves in the middle leaves nothing behind, nor its key', async () => {
  await using service = await openAssetService()
  for (const size of [1000, 3_000_000]) {
    const request = startEndless(service, { 'idempotency-key': 'broken' })
    const closed = new Promise((resolve) => request.on('error', () => {}).on('close', resolve))
    await new Promise((resolve) => request.write(patterned(size), resolve))
    // The bytes have arrived when the store has begun its file; small ones stay in memory.
    if (size > 100_000) await waitUntil(async () => (await service.storedFiles()).length > 0)
    request.destroy()
    await closed
    await waitUntil(async () => (await service.storedFiles()).length === 0)
    assert.equal(await service.store.keys.findKey('local', 'broken', new Date()), null)
  }
  assert.deepEqual(service.defects, [])
})

test('a client that sends beyond the limit gets its 413 while it is still sending', async () => {
  await using service = await openAssetService({ maxUploadBytes: 1_000_000 })
  const request = startEndless(service)
  request.on('error', () => {})
  let sentBytes = 0
  const answered = once(request, 'response')
  let isAnswered = false
  answered.then(() => {
    isAnswered = true
  })
  const chunk = patterned(100_000)
  while (!isAnswered && sentBytes < 500_000_000) {
    sentBytes += chunk.length
    if (!request.write(chunk)) await Promise.race([once(request, 'drain'), answered])
    else await new Promise(setImmediate)
  }
  const [response] = await answered
  assert.equal(response.statusCode, 413)
  assert.ok(sentBytes < 100_000_000, `sent ${sentBytes}`)
  request.destroy()
  await waitUntil(async () => (await service.storedFiles()).length === 0)
})

test('a declared length over the limit is refused before a byte of the body has come', async () => {
  await using service = await openAssetService({ maxUploadBytes: 1000 })
  const socket = connect(service.port, '127.0.0.1')
  socket.write(
    `POST /api/v2/assets HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\nContent-Type: multipart/form-data; boundary=${B}\r\n\r\n`,
  )
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  assert.match(chunk.toString(), /^HTTP\/1\.1 413 /)
  socket.destroy()
})

test('a repeated key header is 400', async () => {
  await using service = await openAssetService()
  const socket = connect(service.port, '127.0.0.1')
  socket.write(
    'POST /api/v2/assets HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 0\r\n\r\n',
  )
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  assert.match(chunk.toString(), /^HTTP\/1\.1 400 /)
  socket.destroy()
})

test('an upload to a slow reader of its answer keeps its connection usable', async () => {
  await using service = await openAssetService()
  for (let count = 0; count < 3; count++) {
    const response = await send(service, FILE + CONTENT_TYPE + END)
    assert.equal(response.status, 422)
    await response.text()
  }
  assert.equal((await send(service, CONTENT_TYPE + FILE_PATH + FILE + END)).status, 201)
})

test('whatever the order of the parts, the asset is the same', async () => {
  await using service = await openAssetService()
  const parts = [CONTENT_TYPE, FILE_PATH, FILE, part('tags', 'one'), part('tags', 'two'), part('expires_in', '60')]
  const first = await readView(await send(service, parts.join('') + END))
  await fc.assert(
    fc.asyncProperty(fc.shuffledSubarray(parts, { minLength: parts.length }), async (shuffled) => {
      const view = await readView(await send(service, shuffled.join('') + END))
      assert.deepEqual(
        [view.content_type, view.hash, view.size_bytes],
        [first.content_type, first.hash, first.size_bytes],
      )
      assert.equal(view.file_path, 'a.png')
    }),
    { numRuns: 12, seed: 7 },
  )
})

// biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
async function readView(response: Response): Promise<any> {
  assert.ok(response.ok, await response.clone().text())
  return response.json()
}
