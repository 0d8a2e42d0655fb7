/** The files of a call: what the account has, content and addresses, each judged by what its input asks for. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { inOneChunk } from '../../lib/files/byte-streams.ts'
import type { JsonValue } from '../../lib/json/lossless-json.ts'
import { createTakeFiles, type InputFile } from '../../src/domain/endpoints/input-files.ts'
import { ACCOUNT, openInputRig, pngHead } from '../adapters/input-urls/input-rig.ts'
import { hashOf, idOf, reference } from './workflows/prepare-rig.ts'

let rig: Awaited<ReturnType<typeof openInputRig>>
before(async () => {
  rig = await openInputRig({
    fetchInput: async (url) => ({
      ...{ contentType: 'image/png', sizeBytes: null, fileName: null, finalUrl: url },
      body: inOneChunk(url.endsWith('.png') ? pngHead(50, 50) : Buffer.from('<html>')),
      async [Symbol.asyncDispose]() {},
    }),
  })
})
after(() => rig[Symbol.asyncDispose]())

/** A stored picture, under a name if it has one. */
async function stored(filePath: string | null, bytes = pngHead(40, 30)) {
  const pending = await rig.blobs.receive(inOneChunk(bytes), { maxBytes: 10 ** 6 })
  const { hash, sizeBytes } = pending
  await pending.keep()
  const asset = { id: crypto.randomUUID(), accountId: ACCOUNT, hash, sizeBytes, contentType: 'image/png', filePath }
  const made = { ...asset, tags: [], createdAt: new Date(), expiresAt: null, jobId: null }
  await rig.store.assets.mint({ asset: made, keyClaim: null, mustOwnHash: false })
  return made
}

function take(values: Readonly<Record<string, JsonValue>>, bounds: Partial<InputFile> = {}) {
  const takeFiles = createTakeFiles({ ...rig, assets: rig.store.assets })
  const files = Object.entries(values).map(([name, value]) => ({
    ...{ name, value, kind: 'image' as const, maxBytes: null, maxPixels: null },
    ...bounds,
  }))
  return takeFiles(ACCOUNT, files, {})
}

test('a file may be given in every way that graphs take, as content or as an address', async () => {
  const one = await stored('portraits/one.png')
  const { taken, problems } = await take({
    name: 'portraits/one.png',
    annotated: 'portraits/one.png [input]',
    id: one.id,
    hash: `blake3:${one.hash}`,
    content: `${one.hash}.png`,
    reference: reference({ id: one.id }),
    by_hash: reference({ hash: one.hash }),
  })
  assert.deepEqual(problems, [])
  const expected = { __type: 'core/ASSET', info: { id: one.id, hash: `blake3:${one.hash}` } }
  assert.deepEqual(
    [...taken.values()],
    Array.from({ length: 7 }, () => expected),
  )
  const fetched = await take({
    url: 'https://files.example/a.png',
    wrapped: { url: 'https://files.example/a.png' },
    referred: reference({ url: 'https://files.example/b.png' }),
    inline: `data:image/png;base64,${pngHead(50, 50).toString('base64')}`,
  })
  assert.deepEqual(fetched.problems, [])
  assert.equal(
    new Set([...fetched.taken.values()].map((ref) => JSON.stringify(ref))).size,
    1,
    'equal bytes are one asset',
  )
})

test('every mistake is told at once, with the name of its input', async () => {
  const one = await stored('two.png', pngHead(41, 30))
  const { taken, problems } = await take({
    good: one.id,
    unknown: idOf(9),
    foreign_hash: hashOf('e'),
    missing: 'no-such-file.png',
    number: 5,
    empty: '',
    list: [one.id],
    object: { uri: 'https://files.example/a.png' },
    malformed: reference({ id: 5 }),
    page: 'https://files.example/page',
    inline: 'data:image/png;base64,***',
  })
  assert.deepEqual([...taken.keys()], ['good'])
  assert.deepEqual(Object.fromEntries(problems.map(({ name, reason }) => [name, reason])), {
    unknown: 'not_available',
    foreign_hash: 'not_available',
    missing: 'not_available',
    number: 'not_a_file',
    empty: 'not_a_file',
    list: 'not_a_file',
    object: 'not_a_file',
    malformed: 'not_a_file',
    page: 'unsupported_type',
    inline: 'not_a_file',
  })
  assert.match(problems.find(({ name }) => name === 'page')?.message ?? '', /^page: the file is a web page$/)
})

test('a stored file must fit its input as a fetched one must', async () => {
  const one = await stored(null)
  const reasonsOf = async (bounds: Partial<InputFile>) => {
    const { problems } = await take({ stored: one.id, fetched: 'https://files.example/a.png' }, bounds)
    return problems.map(({ name, reason }) => `${name} ${reason}`).sort()
  }
  assert.deepEqual(await reasonsOf({ kind: 'mask' }), [])
  assert.deepEqual(await reasonsOf({ kind: 'file' }), [])
  assert.deepEqual(await reasonsOf({ kind: 'video' }), ['fetched unsupported_type', 'stored unsupported_type'])
  assert.deepEqual(await reasonsOf({ maxBytes: 100 }), ['fetched file_too_large', 'stored file_too_large'])
  assert.deepEqual(await reasonsOf({ maxPixels: 1_000 }), ['fetched file_too_large', 'stored file_too_large'])
})
