import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { silentLog } from '../../../lib/log.ts'
import { openFsBlobs } from '../../../src/adapters/blobs/fs/fs-blobs.ts'
import { openModelFiles } from '../../../src/adapters/blobs/fs/model-files.ts'
import { patterned, put } from '../../contracts/assets/blob-store.ts'
import type { WireAsset } from '../../support/clients/checked-client.ts'
import { type AssetService, errorOf, openAssetService, upload, uploaded } from './asset-service.ts'

function weights(seed = 1): Buffer {
  const header = Buffer.from(JSON.stringify({ w: { dtype: 'U8', shape: [300_000], data_offsets: [0, 300_000] } }))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  return Buffer.concat([length, header, patterned(300_000, seed)])
}

const asModel = (file_path: string, bytes: Buffer = weights()) => ({
  bytes,
  fields: { content_type: 'application/octet-stream', file_path },
})

const filesBelow = async (directory: string) =>
  (await readdir(directory, { recursive: true, withFileTypes: true })).filter((entry) => !entry.isDirectory())

async function refused(service: AssetService, options: Parameters<typeof upload>[1]) {
  const { status, code, message } = await errorOf(await upload(service, options))
  assert.deepEqual([status, code], [422, 'invalid_request'], message)
  assert.deepEqual(service.defects, [])
}

test('a model is placed byte by byte, is an asset as well, and outlives it', async () => {
  await using service = await openAssetService({ withModels: true })
  const asset = await uploaded(service, asModel('models/loras/style/x.safetensors'))
  assert.equal(asset.file_path, 'models/loras/style/x.safetensors')
  const path = join(service.modelsDirectory, 'loras/style/x.safetensors')
  assert.ok(weights().equals(await readFile(path)))
  assert.equal((await stat(path)).mode & 0o222, 0)
  assert.deepEqual(
    (await filesBelow(service.modelsDirectory)).map(({ name }) => name),
    ['x.safetensors'],
  )
  const content = await fetch(`${service.origin}/api/v2/assets/${asset.id}/content`)
  assert.ok(weights().equals(Buffer.from(await content.arrayBuffer())))
  await fetch(`${service.origin}/api/v2/assets/${asset.id}`, { method: 'DELETE' })
  await service.blobs.remove(service.blake3.hash(weights()), async () => false)
  assert.ok(weights().equals(await readFile(path)))
})

test('a model whose file comes before its name is judged all the same', async () => {
  await using service = await openAssetService({ withModels: true })
  const asset = await uploaded(service, { ...asModel('models/vae/late.safetensors'), fileFirst: true })
  assert.equal(asset.file_path, 'models/vae/late.safetensors')
  assert.ok(weights().equals(await readFile(join(service.modelsDirectory, 'vae/late.safetensors'))))
  await refused(service, { ...asModel('models/vae/no.safetensors', Buffer.from('no weights')), fileFirst: true })
  await refused(service, { ...asModel('models/vae/late.safetensors', weights(2)), fileFirst: true })
  await refused(service, { ...asModel('models/nowhere/x.safetensors'), fileFirst: true })
  assert.equal((await filesBelow(service.modelsDirectory)).length, 1)
})

test('the same model again is the same record; other bytes never replace a file', async () => {
  await using service = await openAssetService({ withModels: true })
  const first = await uploaded(service, asModel('models/vae/x.safetensors'))
  const again = await uploaded(service, asModel('models/vae/x.safetensors'))
  assert.equal(again.id, first.id)
  await refused(service, asModel('models/vae/x.safetensors', weights(2)))
  const path = join(service.modelsDirectory, 'vae/x.safetensors')
  assert.ok(weights().equals(await readFile(path)))
  // Also not a file that was there before us, with the same length.
  await writeFile(join(service.modelsDirectory, 'vae/own.safetensors'), patterned(weights().length))
  await refused(service, asModel('models/vae/own.safetensors'))
  assert.equal((await service.storedFiles()).length, 1)
})

test('bytes that are no safetensors file and names that are no model are refused; nothing is left', async () => {
  await using service = await openAssetService({ withModels: true })
  const pickle = Buffer.concat([Buffer.from('8002', 'hex'), patterned(500_000)])
  await refused(service, asModel('models/loras/x.safetensors', pickle))
  await refused(service, asModel('models/loras/x.safetensors', weights().subarray(0, 20)))
  for (const path of [
    'models/loras/x.ckpt',
    'models/loras/x.pt',
    'models/loras',
    'models/custom_nodes/x.safetensors',
    'models/loras/../../x.safetensors',
  ]) {
    await refused(service, asModel(path))
  }
  assert.deepEqual(await filesBelow(service.modelsDirectory), [])
  assert.deepEqual(await service.storedFiles(), [])
})

test('no link leads out of the models folder', async () => {
  await using service = await openAssetService({ withModels: true })
  const outside = await mkdtemp(join(tmpdir(), 'atelier-outside-'))
  try {
    await symlink(outside, join(service.modelsDirectory, 'loras'))
    await symlink(join(outside, 'nowhere'), join(service.modelsDirectory, 'vae'))
    await mkdir(join(service.modelsDirectory, 'clip'))
    await symlink(outside, join(service.modelsDirectory, 'clip', 'deep'))
    await writeFile(join(outside, 'target'), weights())
    await symlink(join(outside, 'target'), join(service.modelsDirectory, 'clip', 'x.safetensors'))
    for (const path of ['loras/x', 'loras/a/b', 'vae/x', 'clip/deep/x', 'clip/deep/a/x', 'clip/x']) {
      await refused(service, asModel(`models/${path}.safetensors`))
    }
    assert.deepEqual(await readdir(outside), ['target'])
  } finally {
    await rm(outside, { recursive: true })
  }
})

test('a link to a folder inside is followed', async () => {
  await using service = await openAssetService({ withModels: true })
  await mkdir(join(service.modelsDirectory, 'shared'))
  await symlink(join(service.modelsDirectory, 'shared'), join(service.modelsDirectory, 'loras'))
  await uploaded(service, asModel('models/loras/x.safetensors'))
  assert.deepEqual(await readdir(join(service.modelsDirectory, 'shared')), ['x.safetensors'])
})

test('bytes that are stored already are placed by their hash, if they are a model', async () => {
  await using service = await openAssetService({ withModels: true })
  const fromHash = (hash: string, file_path: string) =>
    fetch(`${service.origin}/api/v2/assets/from-hash`, { method: 'POST', body: JSON.stringify({ hash, file_path }) })
  const model = await uploaded(service, asModel('input/x.safetensors'))
  const response = await fromHash(model.hash, 'models/checkpoints/x.safetensors')
  assert.equal(response.status, 201)
  assert.ok(weights().equals(await readFile(join(service.modelsDirectory, 'checkpoints/x.safetensors'))))
  const again = await fromHash(model.hash, 'models/checkpoints/x.safetensors')
  assert.equal(again.status, 200)
  assert.equal(((await again.json()) as WireAsset).id, ((await response.json()) as WireAsset).id)
  const picture = await uploaded(service)
  assert.equal((await fromHash(picture.hash, 'models/checkpoints/y.safetensors')).status, 422)
  assert.deepEqual(await readdir(join(service.modelsDirectory, 'checkpoints')), ['x.safetensors'])
})

test('a refused record takes its placed model back', async () => {
  await using service = await openAssetService({ withModels: true })
  const headers = { 'idempotency-key': 'model' }
  const both = await Promise.all(
    [1, 2].map((seed) => upload(service, { ...asModel(`models/loras/${seed}.safetensors`, weights(seed)), headers })),
  )
  assert.deepEqual(both.map(({ status }) => status).sort(), [201, 422])
  assert.equal((await filesBelow(service.modelsDirectory)).length, 1)
})

test('across file systems a model is copied: exclusively, whole, and without left-overs', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'atelier-models-'))
  try {
    const blake3 = await openBlake3()
    const blobs = await openFsBlobs({ directory: join(directory, 'blobs'), blake3, log: silentLog })
    const modelsDirectory = join(directory, 'models')
    await mkdir(join(modelsDirectory, 'vae'), { recursive: true })
    const leftOver = `.atelier-${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}.partial`
    await writeFile(join(modelsDirectory, 'vae', leftOver), 'half a copy')
    const linkFile = () => Promise.reject(Object.assign(new Error('cross-device link'), { code: 'EXDEV' }))
    const models = await openModelFiles({ modelsDirectory, blobs, blake3, linkFile })
    const bytes = { hash: await put(blobs, weights()), sizeBytes: weights().length }
    const model = { root: 'vae', name: 'x.safetensors' }
    assert.equal(await models.place(model, bytes), 'placed')
    assert.equal(await models.place(model, bytes), 'same')
    const other = { hash: await put(blobs, weights(2)), sizeBytes: weights(2).length }
    assert.equal(await models.place(model, other), 'taken')
    assert.deepEqual(await readdir(join(modelsDirectory, 'vae')), ['x.safetensors'])
    assert.ok(weights().equals(await readFile(join(modelsDirectory, 'vae/x.safetensors'))))
    await models.takeBack(model)
    assert.deepEqual(await readdir(join(modelsDirectory, 'vae')), [])
  } finally {
    await rm(directory, { recursive: true })
  }
})
