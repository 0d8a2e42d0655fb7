import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import sharp from 'sharp'
import { startTestApp, type TestApp } from '../../../../test/support/app/start-app.ts'
import { savedPicture } from '../../../../test/support/workflows/saved-workflow.ts'
import { type Agent, connectAgent, type Way } from './agent-client.ts'

const KEY = 'the-key-of-this-test'

let app: TestApp
let url: string
let folder: string
before(async () => {
  app = await startTestApp({ settings: { token: KEY, workers: '1', mountPrefix: '/studio' } })
  url = `${app.url}/studio`
  folder = mkdtempSync(path.join(tmpdir(), 'atelier-agent-'))
})
after(async () => {
  await app[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const connect = (way: Way, key = KEY) =>
  connectAgent({ url, key, way, ...(way === 'stdio' && { args: ['--files', folder] }) })

async function pictureIn(content: readonly { type: string; data?: string }[]) {
  const found = content.find(({ type }) => type === 'image')
  assert.ok(found?.data, JSON.stringify(content).slice(0, 500))
  return sharp(Buffer.from(found.data, 'base64')).metadata()
}

for (const way of ['http', 'http of 2025', 'stdio'] as const) {
  describe(`an agent over ${way}`, () => {
    let agent: Agent
    before(async () => {
      agent = await connect(way)
    })
    after(() => agent[Symbol.asyncDispose]())

    test('finds a model, reads its schema, asks the price and runs it', async () => {
      const { json } = await agent.use('find_models', { query: 'local text' })
      assert.deepEqual(json, { found: 1, models: ['local/text-card'] })
      const model = 'local/text-card'
      const schema = await agent.use('get_model_schema', { model })
      assert.deepEqual(schema.json.input.required, ['text'])
      const input = { text: 'Hello', width: 64, height: 48 }
      assert.equal((await agent.use('estimate_model', { model, input })).json.currency, 'USD')
      const run = await agent.use('run_model', { model, input })
      assert.equal(run.isError, false, run.text)
      const { width, height } = await pictureIn(run.content)
      assert.deepEqual([width, height], [64, 48])
      assert.doesNotMatch(run.text, /base64|iVBOR/)
    })

    test('submits what the editor saved, sees progress and gets the picture', async () => {
      const submitted = await agent.use('submit_workflow', {
        workflow: savedPicture('agent'),
        changes: { '7.filename_prefix': way },
      })
      assert.equal(submitted.isError, false, submitted.text)
      const progress: number[] = []
      const watched = await agent.use('watch_job', { job_id: submitted.json.id }, (told) =>
        progress.push(told.progress),
      )
      assert.equal(watched.json.status, 'succeeded', watched.text)
      assert.ok(progress.length > 0)
      assert.deepEqual(
        progress,
        [...new Set(progress)].toSorted((a, b) => a - b),
      )
      const again: string[] = []
      await agent.use('watch_job', { job_id: submitted.json.id }, ({ message = '' }) => again.push(message))
      assert.deepEqual(again, ['succeeded'])
      const [output] = watched.json.outputs
      assert.ok(output.url.startsWith(`${url}/api/`), output.url)
      const shown = await agent.use('get_output', { asset_id: output.asset_id })
      assert.equal((await pictureIn(shown.content)).format, 'png')
      const link = watched.content.find(({ type }) => type === 'resource_link')
      const { contents } = await agent.client.readResource({ uri: link?.uri ?? '' })
      assert.equal((contents[0] as { mimeType?: string }).mimeType, 'image/png')
      const { resources } = await agent.client.listResources()
      assert.ok(resources.some(({ uri }) => uri === `atelier://jobs/${submitted.json.id}`))
      const listed = await agent.use('list_jobs', { status: ['succeeded'] })
      assert.ok(listed.json.jobs.some(({ id }) => id === submitted.json.id))
    })

    test('finds node classes, and learns which one it meant', async () => {
      const { json } = await agent.use('find_node_classes', { query: 'save image' })
      assert.ok(json.classes.some(({ class_type: name }) => name === 'SaveImage'))
      assert.match((await agent.use('get_node_class', { class_type: 'EmptyImage' })).text, /"width":\["INT"/)
      assert.deepEqual((await agent.use('find_weights', { query: 'sdxl' })).json, { found: 0, weights: [] })
      const wrong = await agent.use('get_node_class', { class_type: 'SaveImagee' })
      assert.ok(wrong.isError)
      assert.match(wrong.text, /did you mean SaveImage\?/)
    })

    test('keeps every digit of a seed that comes as text, and is told what is wrong with a graph', async () => {
      const { text } = await agent.use('convert_workflow', {
        workflow: '{"1":{"class_type":"K","inputs":{"seed":18446744073709551615}}}',
      })
      assert.match(text, /18446744073709551615/)
      const refused = await agent.use('submit_workflow', { workflow: { 1: { class_type: 'NoSuchClass', inputs: {} } } })
      assert.ok(refused.isError)
      assert.match(refused.text, /NoSuchClass/)
      const checked = await agent.use('validate_workflow', { workflow: savedPicture('checked') })
      assert.equal(checked.json.is_accepted, true, checked.text)
      const complaints = await agent.use('validate_workflow', {
        workflow: { 1: { class_type: 'NoSuchClass', inputs: {} } },
      })
      assert.equal(complaints.json.is_accepted, false)
      assert.ok((await agent.use('submit_workflow', { workflow: {}, changes: { 'x.y': 1 } })).isError)
    })

    test('uploads a file and uses it', async () => {
      const bytes = await sharp({ create: { width: 3000, height: 2000, channels: 3, background: '#258' } })
        .png()
        .toBuffer()
      const uploaded = await agent.use('upload_file', { name: 'sky.png', data: bytes.toString('base64') })
      const { workflow_input: image, asset_id: id } = uploaded.json
      const workflow = {
        1: { class_type: 'LoadImage', inputs: { image } },
        2: { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'sky' } },
      }
      const { json } = await agent.use('submit_workflow', { workflow })
      assert.equal((await agent.use('watch_job', { job_id: json.id })).json.status, 'succeeded')
      const small = await agent.use('get_output', { asset_id: id, max_pixels: 256 })
      assert.equal((await pictureIn(small.content)).width, 256)
    })

    test('a wrong key is refused', async () => {
      if (way !== 'stdio') return assert.rejects(connect(way, 'wrong'), /401|auth/i)
      await using stranger = await connect(way, 'wrong')
      const told = await stranger.use('list_jobs')
      assert.ok(told.isError)
      assert.match(told.text, /unauthorized[\s\S]*key is missing or wrong/)
    })
  })
}

test('over stdio only files of the named folders can be sent', async () => {
  await using agent = await connect('stdio')
  writeFileSync(path.join(folder, 'note.txt'), 'hello')
  const { json } = await agent.use('upload_file', { path: 'note.txt' })
  assert.deepEqual([json.size_bytes, json.content_type], [5, 'text/plain'])
  const refused = await agent.use('upload_file', { path: path.join(app.dataDir, 'atelier.db') })
  assert.ok(refused.isError)
  assert.match(refused.text, /no file .* in the folders/)
})

test('a large picture is made smaller, and the whole file stays behind a link', async () => {
  await using agent = await connect('http')
  const noise = {
    width: 1300,
    height: 1300,
    channels: 3 as const,
    noise: { type: 'gaussian' as const, mean: 128, sigma: 60 },
  }
  const form = new FormData()
  form.set('content_type', 'image/png')
  form.set('file_path', 'noise.png')
  form.set(
    'file',
    new Blob([
      await sharp({ create: { ...noise, background: '#000' } })
        .png()
        .toBuffer(),
    ]),
    'noise.png',
  )
  const headers = { authorization: `Bearer ${KEY}` }
  const stored = await fetch(`${url}/api/v2/assets`, { method: 'POST', headers, body: form })
  const { id, size_bytes: size } = (await stored.json()) as { id: string; size_bytes: number }
  assert.ok(size > 4_194_304, String(size))
  const { content } = await agent.use('get_output', { asset_id: id })
  const shown = content.find(({ type }) => type === 'image')?.data ?? ''
  assert.ok(shown.length <= 1_048_576, String(shown.length))
  assert.ok(((await pictureIn(content)).width ?? 0) <= 1024)
  const { contents } = await agent.client.readResource({ uri: content.find(({ uri }) => uri)?.uri ?? '' })
  assert.match((contents[0] as { text: string }).text, new RegExp(`${size} bytes.*${id}/content$`))
})

describe('in front of the protocol', () => {
  const post = (headers: Record<string, string>, body = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}') =>
    fetch(`${url}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${KEY}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body,
    })

  test('a page of another site is refused, and so is a request without a key', async () => {
    const foreign = await post({ origin: 'https://evil.example' })
    assert.deepEqual([foreign.status, ((await foreign.json()) as { jsonrpc: string }).jsonrpc], [403, '2.0'])
    const nobody = await post({ authorization: '' })
    assert.deepEqual([nobody.status, nobody.headers.get('www-authenticate')], [401, 'Bearer'])
  })

  test('what is too large, too deep or no JSON is refused, and other methods are not there', async () => {
    assert.equal((await post({}, `"${'x'.repeat(4_200_000)}"`)).status, 413)
    assert.equal((await post({}, '['.repeat(500))).status, 400)
    assert.equal((await post({}, '{')).status, 400)
    const got = await fetch(`${url}/mcp`, { headers: { authorization: `Bearer ${KEY}` } })
    assert.deepEqual([got.status, got.headers.get('allow')], [405, 'POST'])
  })
})
