/** Outputs through the whole service: nothing that a node reports is dropped, and every output has its kind. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { blake3 } from 'hash-wasm'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { CheckedClient, node } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

describe('what a node reports', () => {
  let service: TestApp
  let client: CheckedClient
  const engine = createFakeEngine()
  before(async () => {
    service = await startTestApp({ overrides: { engine } })
    client = new CheckedClient(service.url)
  })
  after(() => service[Symbol.asyncDispose]())

  const FILES: [report: Record<string, string>, type: string, contentType: string][] = [
    [{ key: 'images', filename: 'a.png' }, 'image', 'image/png'],
    [{ key: 'images', filename: 'a.webp' }, 'image', 'image/webp'],
    [{ key: 'images', filename: 'clip.mp4' }, 'video', 'video/mp4'],
    [{ key: 'images', filename: 'clip', content_type: 'video/webm' }, 'video', 'video/webm'],
    [{ key: 'gifs', filename: 'a.gif' }, 'video', 'image/gif'],
    [{ key: 'gifs', filename: 'a.mp4', content_type: 'video/h264-mp4' }, 'video', 'video/h264-mp4'],
    [{ key: 'video', filename: 'a.mp4' }, 'video', 'video/mp4'],
    [{ key: 'audio', filename: 'a.flac' }, 'audio', 'audio/flac'],
    [{ key: 'latents', filename: 'a.latent' }, 'latent', 'application/x-latent'],
    [{ key: '3d', filename: 'a.glb' }, 'file', 'model/gltf-binary'],
    [{ key: 'result', filename: 'a.obj' }, 'file', 'model/obj'],
    [{ key: 'files', filename: 'a.png' }, 'file', 'image/png'],
    [{ key: 'a_images', filename: 'a.jpg' }, 'image', 'image/jpeg'],
    [{ key: 'never_heard_of', filename: 'a.xyz' }, 'file', 'application/octet-stream'],
    [{ key: 'never_heard_of', filename: 'a.txt' }, 'text', 'text/plain'],
  ]

  test('as a file becomes an output of its kind, whatever the key', async () => {
    const graph = Object.fromEntries(
      FILES.map(([report], index) => [`${index + 1}`, node('FakeFile', { ...report, text: `file ${index}` })]),
    )
    const job = await client.run(graph)
    assert.equal(job.status, 'succeeded')
    for (const [index, [report, type, contentType]] of FILES.entries()) {
      const output = job.outputs.find(({ node_id }) => node_id === `${index + 1}`)
      assert.deepEqual([report, output?.name, output?.type], [report, report['filename'], type])
      assert.equal(output?.content_type.split(';')[0], contentType, JSON.stringify(report))
      assert.equal(output?.size_bytes, `file ${index}`.length)
      assert.equal(output?.hash, `blake3:${await blake3(`file ${index}`)}`)
      assert.equal((await client.call(`/api/v2/assets/${output?.id}/content`)).text, `file ${index}`)
    }
    assert.equal(job.outputs.length, FILES.length)
  })

  const VALUES: [value: unknown, text: string, contentType: string][] = [
    ['plain words ✓', 'plain words ✓', 'text/plain'],
    ['', '', 'text/plain'],
    [5, '5', 'application/json'],
    [1.5, '1.5', 'application/json'],
    [true, 'true', 'application/json'],
    [{ a: [1, { b: null }] }, '{"a":[1,{"b":null}]}', 'application/json'],
    [{ __value__: [[1, 2], 'x'] }, '[[1,2],"x"]', 'application/json'],
  ]

  test('as a value becomes a text output', async () => {
    for (const key of ['text', 'anything', 'images', 'audio']) {
      const graph = Object.fromEntries(
        VALUES.map(([value], index) => [`${index + 1}`, node('FakeValue', { value, key })]),
      )
      const job = await client.run(graph)
      assert.equal(job.outputs.length, VALUES.length)
      for (const [index, [, text, contentType]] of VALUES.entries()) {
        const output = job.outputs.find(({ node_id }) => node_id === `${index + 1}`)
        assert.deepEqual([output?.type, output?.content_type.split(';')[0]], ['text', contentType])
        const { bytes } = await client.call(`/api/v2/assets/${output?.id}/content`)
        assert.equal(bytes.toString().replaceAll(' ', ''), text.replaceAll(' ', ''))
        assert.equal(bytes.length, output?.size_bytes)
      }
    }
  })

  test('as a full path is shown by its base name only', async () => {
    const paths = ['/var/secret/out/a.png', 'C:\\Users\\me\\b.png', '../../c.png', 'sub/dir/d.png', '/', '..']
    const graph = Object.fromEntries(paths.map((filename, index) => [`${index + 1}`, node('FakeFile', { filename })]))
    const job = await client.run(graph)
    const names = job.outputs.map(({ name }) => name)
    assert.deepEqual(names.slice(0, 4), ['a.png', 'b.png', 'c.png', 'd.png'])
    assert.equal(names.length, 6)
    assert.doesNotMatch(JSON.stringify(job), /secret|Users|\.\./)
    assert.doesNotMatch((await client.call(`/api/v2/assets/${job.outputs[0].id}`)).text, /secret/)
  })

  test('as a temporary file is no output, unless that is configured', async () => {
    const graph = { '1': node('FakeFile', { folder: 'temp', filename: 'preview.png' }), '2': node('FakeFile') }
    assert.deepEqual(
      (await client.run(graph)).outputs.map(({ node_id }) => node_id),
      ['2'],
    )
    await using other = await startTestApp({ settings: { previewOutputs: 'true' }, overrides: { engine } })
    assert.equal((await new CheckedClient(other.url).run(graph)).outputs.length, 2)
  })

  test('twice is one output', async () => {
    engine.faults.duplicateEvents = true
    const job = await client.run({ '1': node('FakeSave', { count: 3 }), '2': node('FakeValue', { value: 'x' }) })
    engine.faults.duplicateEvents = false
    assert.equal(job.outputs.length, 4)
  })

  test('but cannot be read fails the job, and says so', async () => {
    engine.faults.readError = new Error('the disk of the engine is on fire')
    const job = await client.run({ '1': node('FakeSave') })
    engine.faults.readError = null
    assert.deepEqual([job.status, job.outputs.length], ['failed', 0])
    assert.equal(typeof job.error?.['code'], 'string')
    assert.doesNotMatch(JSON.stringify(job), /on fire/)
  })

  test('is there, and readable, before the job is seen to have ended', async () => {
    const { id } = await client.accepted({ '1': node('FakeSave', { count: 40 }) })
    const frames = await client.events(id)
    const outputs = frames.filter(({ event }) => event === 'output')
    assert.equal(outputs.length, 40)
    const last = frames.at(-1)
    assert.deepEqual([last?.event, last?.data.status, last?.data.outputs.length], ['status', 'succeeded', 40])
    for (const { data } of outputs) assert.equal((await client.call(`/api/v2/assets/${data.id}`)).status, 200)
  })
})
