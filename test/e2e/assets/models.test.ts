/** Weights through the whole service: where an upload may place them, and what may be placed. */
import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { isOnPostgres } from '../../support/app/test-store.ts'
import { assetRef, CheckedClient, node, refused } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const OCTETS = { fields: { content_type: 'application/octet-stream' } }

function safetensors(header: object | string, data = Buffer.alloc(4), length?: number): Buffer {
  const text = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header))
  const size = Buffer.alloc(8)
  size.writeBigUInt64LE(BigInt(length ?? text.length))
  return Buffer.concat([size, text, data])
}

const TENSOR = { weight: { dtype: 'F32', shape: [1], data_offsets: [0, 4] } }
const MODEL = safetensors(TENSOR)

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

test('without a models folder a model path is refused with a clear message', async () => {
  await using service = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const client = new CheckedClient(service.url)
  const answer = await client.upload('models/checkpoints/x.safetensors', MODEL, OCTETS)
  refused(answer, 422, 'invalid_request')
  assert.match(answer.json.error.message, /models folder/)
})

// A folder of one machine is refused with Postgres.
if (!isOnPostgres) {
  describe('with a models folder', () => {
    let service: TestApp
    let client: CheckedClient
    let folder: string
    const engine = createFakeEngine()
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'atelier-models-'))
      service = await startTestApp({ settings: { modelsDir: folder }, overrides: { engine } })
      client = new CheckedClient(service.url)
    })
    after(async () => {
      await service[Symbol.asyncDispose]()
      await rm(folder, { recursive: true })
    })

    test('a model is placed byte by byte, and a reference to it is its name below its root', async () => {
      const asset = await client.uploaded('models/loras/style/x.safetensors', MODEL, OCTETS)
      assert.deepEqual(await readFile(join(folder, 'loras/style/x.safetensors')), MODEL)
      const job = await client.run({ '1': node('FakeSource', { lora: assetRef(asset.id) }) })
      const { workflow } = (await client.call(`/api/v2/jobs/${job.id}/workflow`)).json
      assert.equal(workflow['1'].inputs.lora, 'style/x.safetensors')
      assert.equal((await client.upload('models/loras/style/x.safetensors', MODEL, OCTETS)).status, 200)
    })

    test('the header may carry metadata; anything else in its place is refused and leaves nothing', async () => {
      const good = safetensors({ __metadata__: { format: 'pt' }, ...TENSOR })
      await client.uploaded('models/vae/good.safetensors', good, OCTETS)
      const before = await filesBelow(service.dataDir)
      const bad: Record<string, Buffer> = {
        empty: Buffer.alloc(0),
        short: Buffer.from([1, 2, 3]),
        'only a length': MODEL.subarray(0, 8),
        'a header cut off': MODEL.subarray(0, 20),
        garbage: Buffer.from('this is certainly no model at all, is it?'),
        'an over-long header': safetensors(TENSOR, Buffer.alloc(4), 100 * 2 ** 20 + 1),
        'an endless header': safetensors(TENSOR, Buffer.alloc(4), Number.MAX_SAFE_INTEGER),
        'a pickle': Buffer.concat([Buffer.from('80049526', 'hex'), Buffer.alloc(60)]),
        'a zip of pickles': Buffer.concat([Buffer.from('PK\u0003\u0004'), Buffer.alloc(60)]),
        'no JSON': safetensors('{"weight": }'),
        'no object': safetensors('[1, 2]'),
        'no dtype': safetensors({ weight: { shape: [1], data_offsets: [0, 4] } }),
        'no shape': safetensors({ weight: { dtype: 'F32', data_offsets: [0, 4] } }),
        'no offsets': safetensors({ weight: { dtype: 'F32', shape: [1] } }),
        'an entry that is none': safetensors({ weight: 5 }),
      }
      for (const [name, bytes] of Object.entries(bad)) {
        const answer = await client.upload('models/checkpoints/bad.safetensors', bytes, OCTETS)
        assert.deepEqual([name, answer.status, answer.json.error.code], [name, 422, 'invalid_request'])
      }
      assert.deepEqual(await filesBelow(service.dataDir), before)
      const placed = (await filesBelow(folder)).map((file) => relative(folder, file))
      assert.deepEqual(placed.toSorted(), ['loras/style/x.safetensors', 'vae/good.safetensors'])
    })

    test('a path that is no model, leads elsewhere or is taken is refused', async () => {
      const outside = await mkdtemp(join(tmpdir(), 'atelier-outside-'))
      try {
        await symlink(outside, join(folder, 'checkpoints'))
        await writeFile(join(outside, 'seen.txt'), 'x')
        const wrong = [
          'models/checkpoints/escape.safetensors',
          'models/checkpoints',
          'models/checkpoints/',
          'models',
          'models/x.safetensors',
          'models/configs/x.safetensors',
          'models/custom_nodes/x.safetensors',
          'models/LORAS/x.safetensors',
          'models/loras/x.ckpt',
          'models/loras/x.pt',
          'models/loras/x.bin',
          'models/loras/x.safetensors.pt',
          'models/loras/x.SAFETENSORS',
          'models/loras/x',
          'models/loras/.safetensors',
          'models/loras/../x.safetensors',
          'models/../models/loras/x.safetensors',
          'input/../checkpoints/x',
          'input/../models/loras/x.safetensors',
          '/models/loras/x.safetensors',
          'models/loras//x.safetensors',
          'models\\loras\\x.safetensors',
        ]
        for (const path of wrong) refused(await client.upload(path, MODEL, OCTETS), 422, 'invalid_request')
        assert.deepEqual(await readdir(outside), ['seen.txt'])
        await client.uploaded('models/loras/taken.safetensors', MODEL, OCTETS)
        const other = safetensors({ other: TENSOR.weight })
        refused(await client.upload('models/loras/taken.safetensors', other, OCTETS), 422, 'invalid_request')
        assert.deepEqual(await readFile(join(folder, 'loras/taken.safetensors')), MODEL)
      } finally {
        await rm(outside, { recursive: true })
      }
    })

    test('bytes that are there already can be placed by their hash, if they are a model', async () => {
      const fromHash = (hash: string, file_path: string) =>
        client.call('/api/v2/assets/from-hash', { method: 'POST', body: JSON.stringify({ hash, file_path }) })
      const model = await client.uploaded('some.bin', safetensors({ third: TENSOR.weight }), OCTETS)
      assert.equal((await fromHash(model.hash, 'models/unet/third.safetensors')).status, 201)
      assert.equal((await readFile(join(folder, 'unet/third.safetensors'))).length, model.size_bytes)
      const text = await client.uploaded('text.txt', 'no model')
      refused(await fromHash(text.hash, 'models/unet/text.safetensors'), 422, 'invalid_request')
      refused(await fromHash(text.hash, 'input/../models/unet/text.safetensors'), 422, 'invalid_request')
    })
  })
}
