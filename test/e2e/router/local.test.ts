import assert from 'node:assert/strict'
import { test } from 'node:test'
import sharp from 'sharp'
import { startTestApp } from '../../support/app/start-app.ts'
import { CheckedClient, node } from '../../support/clients/checked-client.ts'
import { RouterClient, refusedWith } from '../../support/clients/router-client.ts'
import { createFakeProvider, done, fakeModel } from '../../support/providers/fake-provider.ts'

async function picture(width: number, height: number, background: string): Promise<string> {
  const png = await sharp({ create: { width, height, channels: 3, background } })
    .png()
    .toBuffer()
  return `data:image/png;base64,${png.toString('base64')}`
}

test('workflows that are published as models draw, resize and compose', async () => {
  await using app = await startTestApp({ settings: { workers: '1' } })
  const client = new RouterClient(app.url)
  const run = async (model: string, input: object) => {
    const answer = await client.run(model, input, { key: model })
    assert.equal(answer.status, 200, answer.text)
    return sharp(Buffer.from(answer.json.files[0].data, 'base64'))
  }
  const card = await run('local/text-card', { text: 'Hello', width: 300, height: 100, background: 0, font_size: 40 })
  assert.partialDeepStrictEqual(await card.metadata(), { width: 300, height: 100, format: 'png' })
  assert.ok((await card.stats()).channels[0].max > 200, 'letters are drawn')
  const small = await run('local/resize', { image: await picture(80, 40, '#204060'), width: 20, height: 0 })
  assert.partialDeepStrictEqual(await small.metadata(), { width: 20, height: 10 })
  const both = await run('local/composite', {
    background: await picture(40, 40, '#ff0000'),
    image: await picture(10, 10, '#0000ff'),
    x: 30,
    y: 30,
  })
  const corner = await both.extract({ left: 35, top: 35, width: 1, height: 1 }).removeAlpha().raw().toBuffer()
  assert.deepEqual([...corner], [0, 0, 255])
  const bad = await client.run('local/resize', { image: 'https://example.com/x.png', width: 1, height: 1 })
  assert.equal(refusedWith(bad, 422, 'invalid_input').json.detail[0].type, 'image_load_error')
})

test('a node runs a model once, whatever becomes of its job, and gets the pictures of the answer', async () => {
  const provider = createFakeProvider()
  const png = (await picture(8, 4, '#00ff00')).split(',')[1]
  provider.answer(done({ images: [{ b64_json: png }], note: 'made' }))
  const models = { providers: [provider], models: [fakeModel('fake/direct')] }
  await using app = await startTestApp({ settings: { workers: '1' }, overrides: { models } })
  const jobs = new CheckedClient(app.url)
  const workflow = {
    '1': node('EmptyImage', { width: 6, height: 6, batch_size: 1, color: 255 }),
    '2': node('RunModel', { model: 'fake/direct', input: '{"prompt": "x", "image": "image://0"}', images: ['1', 0] }),
    '3': node('SaveImage', { images: ['2', 1], filename_prefix: 'made' }),
    '4': node('PreviewAny', { source: ['2', 0] }),
  }
  const job = await jobs.run(workflow, { extra_data: { api_key_comfy_org: 'anything' } })
  assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
  assert.equal(provider.submits.length, 1)
  assert.match(String(provider.submits[0]?.input['image']), /^data:image\/png;base64,/)
  const image = job.outputs.find(({ type }) => type === 'image')
  const bytes = await jobs.call(`/api/v2/assets/${image?.id}/content`)
  assert.partialDeepStrictEqual(await sharp(bytes.bytes).metadata(), { width: 8, height: 4 })
})

test('a model that refuses fails the job, and says why', async () => {
  await using app = await startTestApp({ settings: { workers: '1' } })
  const jobs = new CheckedClient(app.url)
  const run = (model: string, input: string) =>
    jobs.run({ '1': node('RunModel', { model, input }), '2': node('PreviewAny', { source: ['1', 0] }) })
  const unknown = await run('nobody/nothing', '{}')
  assert.match(String(unknown.error?.['message']), /there is no model/)
  const invalid = await run('local/text-card', '{"width": 0}')
  assert.match(String(invalid.error?.['message']), /text: this field is required; width: must be >= 1/)
})
