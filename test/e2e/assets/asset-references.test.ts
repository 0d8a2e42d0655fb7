/** Assets in workflows through the whole service: references, bare names, and outputs that become inputs. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import sharp from 'sharp'
import { addForeignAsset } from '../../support/app/foreign-asset.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { assetRef, CheckedClient, node, refused, type WireAsset } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const UNKNOWN_ID = '0199b3f4-1d2e-4a3b-8c4d-5e6f70819234'

let service: TestApp
let client: CheckedClient
const engine = createFakeEngine()
before(async () => {
  service = await startTestApp({ overrides: { engine } })
  client = new CheckedClient(service.url)
})
after(() => service[Symbol.asyncDispose]())

const content = (id: string) => client.call(`/api/v2/assets/${id}/content`)
const fromHash = (body: object) =>
  client.call('/api/v2/assets/from-hash', { method: 'POST', body: JSON.stringify(body) })
const remove = (id: string) => client.call(`/api/v2/assets/${id}`, { method: 'DELETE' })

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
    await addForeignAsset(service, `blake3:${'1'.repeat(64)}`)
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
