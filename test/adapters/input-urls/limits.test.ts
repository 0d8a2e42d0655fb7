/** What is taken from an address that may be asked: within bounds of time, size, type and number, and never in part. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { loadSharp } from '../../../lib/files/load-sharp.ts'
import type { Asset } from '../../../src/domain/assets/asset.ts'
import { type FetchInput, GivenFileError } from '../../../src/domain/assets/given-files.ts'
import { startTlsFake, trustTlsFakes } from '../../support/network/tls-fake.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { ACCOUNT, openInputRig, pngHead } from './input-rig.ts'

let trust: Disposable
let server: Awaited<ReturnType<typeof startTlsFake>>
let rig: Awaited<ReturnType<typeof openInputRig>>
let answer: (path: string, response: ServerResponse) => void = () => {}
let asked = 0

before(async () => {
  trust = trustTlsFakes()
  server = await startTlsFake((request, response) => {
    asked++
    answer(request.url ?? '', response)
  })
  rig = await openInputRig({ network: { mayConnect: (address) => address === '127.0.0.1' }, ports: [server.port] })
})
after(async () => {
  await rig[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
  trust[Symbol.dispose]()
})

const PNG = pngHead(8, 8)
const addressOf = (path = '/a.png') => `https://files.example:${server.port}${path}`

/** Answers with these bytes, whatever is asked. */
function serve(bytes: Buffer | string, headers: Record<string, string> = {}): void {
  answer = (_path, response) => void response.writeHead(200, headers).end(bytes)
}

test('what was fetched is an asset of the account, kept once, with the type of its bytes', async () => {
  serve(PNG, { 'content-type': 'text/plain' })
  const one = (await rig.take(addressOf())) as Asset
  assert.deepEqual(
    { ...one, id: '', createdAt: '', hash: '' },
    {
      ...{ id: '', accountId: ACCOUNT, hash: '', sizeBytes: PNG.length, contentType: 'image/png', filePath: null },
      ...{ tags: [], createdAt: '', expiresAt: null, jobId: null },
    },
  )
  const other = (await rig.take(addressOf('/other.jpg'))) as Asset
  assert.equal(other.id, one.id, 'the same bytes of another address are the same asset')
  const inline = (await rig.take(`data:image/jpeg;base64,${PNG.toString('base64')}`)) as Asset
  assert.equal(inline.id, one.id)
  assert.equal(rig.ticker.count(), 0, 'no clock runs on')
})

test('an answer that does not begin is given up after ten seconds', async () => {
  answer = () => {}
  const before = asked
  const outcome = rig.take(addressOf())
  await waitUntil(() => asked > before)
  rig.ticker.advance(9_999)
  rig.ticker.advance(1)
  assert.match(String(await outcome), /^fetch_failed: files\.example:\d+: no answer came within 10 s$/)
})

test('each hop has ten seconds of its own', async () => {
  const held: ServerResponse[] = []
  answer = (_path, response) => void held.push(response)
  const outcome = rig.take(addressOf())
  for (let hop = 0; hop < 3; hop++) {
    const response = await waitUntil(() => held[hop])
    rig.ticker.advance(9_000)
    if (hop < 2) response.writeHead(302, { location: '/next' }).end()
    else response.end(PNG)
  }
  assert.equal(typeof (await outcome), 'object')
})

test('a body that trickles is given up, and leaves nothing', async () => {
  const stored = await rig.stored()
  answer = (_path, response) => void response.writeHead(200).write(PNG)
  const outcome = rig.take(addressOf())
  await waitUntil(() => rig.bodies() === 1)
  rig.ticker.advance(10_000)
  assert.match(String(await outcome), /^fetch_failed: files\.example:\d+: its server sends less than 10 KB per second$/)
  assert.deepEqual(await rig.stored(), stored)
  assert.equal(rig.ticker.count(), 0)
})

test('all files of a request have a minute together, whatever their servers do', async () => {
  let begun = 0
  const never: FetchInput = async (finalUrl, { signal }) => ({
    ...{ contentType: '', sizeBytes: null, fileName: null, finalUrl },
    body: (async function* () {
      begun++
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('cut'))))
    })(),
    async [Symbol.asyncDispose]() {},
  })
  await using patient = await openInputRig({ fetchInput: never })
  const outcomes = patient.takeGivenFiles(
    ACCOUNT,
    Array.from({ length: 9 }, (_, index) => ({
      ...{ kind: 'file' as const, maxBytes: null, maxPixels: null },
      url: `https://files.example/${index}`,
    })),
    {},
  )
  await waitUntil(() => begun === 4)
  patient.ticker.advance(60_000)
  for (const outcome of await outcomes)
    assert.equal(outcome instanceof GivenFileError && outcome.message, 'it took longer than 60 s')
})

test('a body without an end is cut at the size that the input takes', async () => {
  answer = (_path, response) => {
    response.write(PNG)
    const more = () => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536)));
    }
    response.on('drain', more)
    more()
  }
  const stored = await rig.stored()
  assert.match(String(await rig.take(addressOf(), { maxBytes: 300_000 })), /^file_too_large: /)
  assert.deepEqual(await rig.stored(), stored)
})

test('an answer that announces too much is not begun', async () => {
  serve(PNG, { 'content-length': String(60 * 2 ** 20) })
  assert.match(String(await rig.take(addressOf())), /^file_too_large: .*62914560/)
})

test('an answer that is shorter than it announces is not taken', async () => {
  answer = (_path, response) => {
    response.writeHead(200, { 'content-length': String(PNG.length + 5) })
    response.write(PNG, () => response.destroy())
  }
  const stored = await rig.stored()
  assert.match(String(await rig.take(addressOf())), /^fetch_failed: .*broke/)
  assert.deepEqual(await rig.stored(), stored)
})

test('a connection that breaks before the answer begins is made once more', async () => {
  let breaks = 1
  answer = (_path, response) => void (breaks-- > 0 ? response.destroy() : response.end(PNG))
  assert.equal(typeof (await rig.take(addressOf())), 'object')
  breaks = 2
  assert.match(String(await rig.take(addressOf())), /^fetch_failed: .*broke/)
})

test('compressed content is refused, for nobody asked for it', async () => {
  for (const encoding of ['gzip', 'br', 'deflate', 'gzip, gzip']) {
    serve(gzipSync(Buffer.alloc(10 ** 7)), { 'content-encoding': encoding, 'content-type': 'image/png' })
    assert.match(String(await rig.take(addressOf())), /^fetch_failed: .*compressed/)
  }
})

test('a status that is not 200 is told', async () => {
  for (const status of [204, 206, 304, 401, 404, 500]) {
    answer = (_path, response) => void response.writeHead(status).end(status === 204 || status === 304 ? '' : PNG)
    assert.match(
      String(await rig.take(addressOf())),
      new RegExp(`^fetch_failed: files\\.example:\\d+: its server answered ${status}$`),
    )
  }
})

const PAGE = '<!doctype html><html><body>Please sign in</body></html>'
const WRONG_TYPES: readonly (readonly [
  string,
  Buffer | string,
  'image' | 'video' | 'audio' | 'file' | 'model3d',
  RegExp,
])[] = [
  ['a web page called a picture', PAGE, 'image', /a web page/],
  ['a web page as any file', `\ufeff  <HTML>${PAGE}`, 'file', /a web page/],
  ['a page behind a comment', `<!-- x -->\n${PAGE}`, 'file', /a web page/],
  [
    'a drawing with scripts in it',
    '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>',
    'image',
    /image\/svg\+xml, and a picture is needed/,
  ],
  ['a picture for a video', PNG, 'video', /image\/png, and a video is needed/],
  ['a picture for sound', PNG, 'audio', /image\/png, and sound is needed/],
  ['sound for a picture', 'ID3 and so on', 'image', /audio\/mpeg, and a picture is needed/],
  ['text for a picture', 'not a picture', 'image', /of no known type, and a picture/],
  ['a 3D model that is none', 'not a model', 'model3d', /of no known type, and a 3D model/],
  ['nothing', '', 'image', /the file is empty/],
  ['a picture that ends in its head', PNG.subarray(0, 20), 'image', /does not say how large/],
]

for (const [what, bytes, kind, message] of WRONG_TYPES) {
  test(`refused: ${what}`, async () => {
    const stored = await rig.stored()
    serve(bytes, { 'content-type': kind === 'model3d' ? 'model/gltf-binary' : 'image/png' })
    const outcome = String(await rig.take(addressOf(kind === 'model3d' ? '/a.glb' : '/a.png'), { kind }))
    assert.match(outcome, /^(unsupported_type|not_a_file): /)
    assert.match(outcome, message)
    if (what !== 'a picture that ends in its head') assert.deepEqual(await rig.stored(), stored)
  })
}

test('kinds of files are told by their bytes, and where they have none of their own by what is said of them', async () => {
  const typeOf = async (bytes: Buffer | string, kind: 'video' | 'audio' | 'file' | 'model3d', path: string) => {
    serve(bytes)
    const asset = await rig.take(addressOf(path), { kind })
    return typeof asset === 'string' ? asset : asset.contentType
  }
  assert.equal(await typeOf(Buffer.from('\0\0\0 ftypisom...'), 'video', '/v'), 'video/mp4')
  assert.equal(await typeOf(Buffer.from('\0\0\0 ftypM4A ...'), 'audio', '/v.png'), 'audio/mp4')
  assert.equal(await typeOf('solid cube', 'model3d', '/cube.stl?x=1'), 'model/stl')
  assert.equal(await typeOf('a,b\n1,2', 'file', '/table.csv'), 'text/csv')
  assert.equal(await typeOf('anything', 'file', '/a'), 'application/octet-stream')
})

test('a picture of too many pixels is refused before anybody decodes it', async () => {
  const stored = await rig.stored()
  serve(pngHead(100_000, 100_000))
  assert.match(
    String(await rig.take(addressOf())),
    /^file_too_large: the picture has 100000 x 100000 pixels; at most 67108864 /,
  )
  assert.deepEqual(await rig.stored(), stored, 'nothing of it is kept')
  serve(pngHead(8192, 8192))
  assert.equal(typeof (await rig.take(addressOf())), 'object')
  serve(pngHead(101, 100))
  assert.match(String(await rig.take(addressOf(), { maxPixels: 10_000 })), /^file_too_large: .*at most 10000 /)
})

test('a picture that says at its end how large it is is judged once it is there', async () => {
  const create = { width: 300, height: 200, channels: 3 as const, background: 'red' }
  const tiff = await loadSharp()({ create }).tiff({ compression: 'none' }).toBuffer()
  assert.ok(tiff.readUInt32LE(4) > 65_536)
  serve(tiff)
  assert.match(
    String(await rig.take(addressOf(), { maxPixels: 59_999 })),
    /^file_too_large: the picture has 300 x 200 /,
  )
  assert.equal(typeof (await rig.take(addressOf(), { maxPixels: 60_000 })), 'object')
})

test('a request names sixteen addresses at most, and each is fetched once', async () => {
  serve(PNG)
  const before = asked
  const file = (index: number) => ({
    kind: 'image' as const,
    maxBytes: null,
    maxPixels: null,
    url: addressOf(`/${index}`),
  })
  const files = [...Array.from({ length: 17 }, (_, index) => file(index)), file(0)]
  const outcomes = await rig.takeGivenFiles(ACCOUNT, files, {})
  assert.equal(asked - before, 16)
  assert.deepEqual(
    outcomes.map((outcome) => (outcome instanceof GivenFileError ? outcome.fault : 'taken')),
    [...Array.from({ length: 16 }, () => 'taken'), 'fetch_forbidden', 'taken'],
  )
  const known = new Map()
  for (let item = 0; item < 3; item++) {
    const [, last] = await rig.takeGivenFiles(ACCOUNT, [file(100), file(item)], { known })
    assert.equal(last instanceof GivenFileError, false)
  }
  assert.equal(asked - before, 16 + 4, 'a batch asks once for what all of its items name')
})

test('an account has a few fetches under way at a time, and what waits is fetched later', async () => {
  const held: ServerResponse[] = []
  answer = (_path, response) => void held.push(response)
  const files = Array.from({ length: 9 }, (_, index) => ({
    ...{ kind: 'image' as const, maxBytes: null, maxPixels: null },
    url: addressOf(`/${index}`),
  }))
  const outcomes = rig.takeGivenFiles(ACCOUNT, files, {})
  await waitUntil(() => held.length === 4)
  serve(PNG)
  // Those that wait are asked only as others end.
  for (const response of held) response.end(PNG)
  assert.equal(
    (await outcomes).every((outcome) => !(outcome instanceof GivenFileError)),
    true,
  )
  assert.equal(held.length, 4)
})

test('a caller that leaves ends its fetches, those that wait included', async () => {
  const closed: boolean[] = []
  const before = asked
  answer = (_path, response) => {
    response.writeHead(200).write(PNG)
    response.on('close', () => closed.push(true))
  }
  const leaving = new AbortController()
  const files = Array.from({ length: 6 }, (_, index) => ({
    ...{ kind: 'image' as const, maxBytes: null, maxPixels: null },
    url: addressOf(`/${index}`),
  }))
  const outcomes = rig.takeGivenFiles(ACCOUNT, files, { signal: leaving.signal })
  await waitUntil(() => asked === before + 4 && rig.bodies() === 4)
  leaving.abort(new Error('gone'))
  await assert.rejects(outcomes, /gone/)
  await waitUntil(() => closed.length === 4)
  assert.equal(asked, before + 4)
  assert.equal(rig.ticker.count(), 0)
  serve(PNG)
  assert.equal(typeof (await rig.take(addressOf())), 'object', 'there is room again')
})

test('a data URL holds ten megabytes at most, in base64 or plain', async () => {
  const inline = async (url: string, kind: 'image' | 'file' = 'image') => {
    const outcome = await rig.take(url, { kind })
    return typeof outcome === 'string' ? outcome : outcome.contentType
  }
  assert.equal(await inline(`DATA:;base64,${PNG.toString('base64')}`), 'image/png')
  assert.equal(await inline(`data:image/png;name=a.png;base64,${PNG.toString('base64url')}`), 'image/png')
  assert.equal(
    await inline(`data:,${[...PNG].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')}`),
    'image/png',
  )
  assert.equal(await inline('data:text/csv,a%2Cb', 'file'), 'text/csv')
  const large = Buffer.concat([PNG, Buffer.alloc(10 * 2 ** 20)])
  assert.match(await inline(`data:image/png;base64,${large.toString('base64')}`), /^file_too_large: .*10485760/)
  assert.match(
    await inline(`data:image/png;base64,${large.toString('base64')}${'A'.repeat(8_000_000)}`),
    /^file_too_large: /,
  )
  for (const url of ['data:', 'data:image/png', 'data:image/png;base64,***', 'data:image/png;base64,'])
    assert.match(await inline(url), /^not_a_file: /, url)
  assert.match(await inline('data:text/html,<html>'), /^unsupported_type: /)
})

test('an account that may keep no more is told so', async () => {
  await using full = await openInputRig({
    network: { mayConnect: (address) => address === '127.0.0.1' },
    ports: [server.port],
    storageLimit: 500,
  })
  serve(PNG)
  assert.match(String(await full.take(addressOf())), /^file_too_large: the account may keep 500 bytes/)
})
