/** Files that workflows name by an address, through the whole service. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { loadSharp } from '../../../lib/files/load-sharp.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { CheckedClient, node } from '../../support/clients/checked-client.ts'
import { findFreePort } from '../../support/network/free-port.ts'
import { type HttpFake, startHttpFake } from '../../support/providers/http-fake.ts'
import { waitUntil } from '../../support/wait-until.ts'

const showing = (...images: unknown[]) =>
  Object.fromEntries(
    images.flatMap((image, index) => [
      [`load${index}`, node('LoadImage', { image })],
      [`save${index}`, node('SaveImage', { images: [`load${index}`, 0], filename_prefix: 'made' })],
    ]),
  )

/** A picture that never ends. */
function* endless(start: Uint8Array) {
  yield start
  for (;;) yield new Uint8Array(65_536)
}

describe('a workflow that names files by their address', () => {
  let source: HttpFake
  let service: TestApp
  let client: CheckedClient
  let asked: string[] = []
  let held: ServerResponse[] = []
  before(async () => {
    const background = { r: 9, g: 9, b: 9 }
    const png = await loadSharp()({ create: { width: 20, height: 10, channels: 3, background } })
      .png()
      .toBuffer()
    source = await startHttpFake((request, response) => {
      asked.push(request.url ?? '')
      if (request.url === '/held.png') return void held.push(response)
      if (request.url === '/torn.png') return void response.socket?.destroy()
      if (request.url === '/endless.png')
        return void Readable.from(endless(png))
          .on('error', () => {})
          .pipe(response)
      response.end(request.url === '/page.png' ? '<html>sign in</html>' : png)
    })
    service = await startTestApp({ settings: { inputUrls: `${source.url},jobs` } })
    client = new CheckedClient(service.url)
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    await source[Symbol.asyncDispose]()
  })

  const post = (path: string, body: unknown) => {
    asked = []
    held = []
    return client.call(path, { method: 'POST', body: JSON.stringify(body) })
  }
  const untilDone = (id: string) =>
    waitUntil(async () => {
      const { json } = await client.call(`/api/v2/jobs/${id}`)
      return json.completed_at === null ? null : json
    })

  test('runs with what they were when it was submitted, and never asks again', async () => {
    const reference = { __type: 'core/ASSET', info: { url: `${source.url}/a.png` } }
    const made = await post('/api/v2/jobs', { workflow: showing({ url: `${source.url}/a.png` }, reference) })
    assert.equal(made.status, 201, made.text)
    assert.deepEqual(asked, ['/a.png'], 'an address that is named twice is asked once')
    const job = await untilDone(made.json.id)
    assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
    const { workflow } = (await client.call(`/api/v2/jobs/${made.json.id}/workflow`)).json
    assert.match(workflow.load0.inputs.image, /^[0-9a-f]{64}\.png$/)
    assert.equal(workflow.load1.inputs.image, workflow.load0.inputs.image)
    assert.deepEqual(asked, ['/a.png'])
  })

  test('a call of an endpoint fetches the file of its input, alone and in a batch', async () => {
    const published = await post('/api/v2/endpoints', { name: 'shown', file: showing('example.png') })
    assert.equal(published.status, 201, published.text)
    const [input] = published.json.version.inputs
    const called = await post('/api/v2/endpoints/shown/runs', { inputs: { [input.name]: `${source.url}/e.png` } })
    assert.deepEqual([called.status, asked], [201, ['/e.png']], called.text)
    assert.equal((await untilDone(called.json.id)).status, 'succeeded')
    const items = ['/f.png', '/f.png'].map((path) => ({ [input.name]: `${source.url}${path}` }))
    const batch = await post('/api/v2/endpoints/shown/runs/batch', { items })
    assert.deepEqual([batch.status, batch.json.accepted, asked], [201, 2, ['/f.png']], batch.text)
    const page = await post('/api/v2/endpoints/shown/runs', { inputs: { [input.name]: `${source.url}/page.png` } })
    assert.deepEqual([page.status, page.json.error.details.inputs[0].reason], [422, 'unsupported_type'])
  })

  test('a call whose addresses never end or break off is refused by the names of its inputs, within their bounds', async () => {
    const declaration = {
      ...{ only: true, inputs: { long: { from: 'load0.image', max_bytes: 1_000_000 }, torn: { from: 'load1.image' } } },
    }
    const file = showing('example.png', 'example.png')
    const published = await post('/api/v2/endpoints', { name: 'bounded', file, declaration })
    assert.equal(published.status, 201, published.text)
    const inputs = { long: `${source.url}/endless.png`, torn: `${source.url}/torn.png` }
    const { status, json } = await post('/api/v2/endpoints/bounded/runs', { inputs })
    const told = json.error.details.inputs.map((each: { name: string; reason: string; message: string }) => {
      assert.ok(each.message.startsWith(`${each.name}: `), each.message)
      return [each.name, each.reason]
    })
    assert.deepEqual(
      [status, told],
      [
        422,
        [
          ['long', 'file_too_large'],
          ['torn', 'fetch_failed'],
        ],
      ],
    )
  })

  test('is refused with every file that cannot be taken, by node and input', async () => {
    const graph = showing(
      { url: `${source.url}/page.png` },
      { url: 'https://127.0.0.1/a.png' },
      { url: `${source.url}/b.png` },
    )
    const refused = await post('/api/v2/jobs', { workflow: graph })
    assert.equal(refused.status, 422, refused.text)
    const { code, message, details } = refused.json.error
    assert.equal(code, 'invalid_workflow')
    assert.match(message, /^Node load0, input image: the file is a web page \(and 1 more\)$/)
    const [page, inside] = [details.node_errors.load0[0], details.node_errors.load1[0]]
    assert.deepEqual([page.field, page.reason], ['image', 'unsupported_type'])
    assert.deepEqual([inside.field, inside.reason], ['image', 'fetch_forbidden'])
    assert.deepEqual(Object.keys(details.node_errors), ['load0', 'load1'])
  })

  test('may be one of a batch, which asks once for each address', async () => {
    const workflow = showing({ url: `${source.url}/c.png` })
    const product = { 'save0.filename_prefix': ['a', 'b', 'c', 'd', 'e'] }
    const made = await post('/api/v2/jobs/batch', { workflow, product })
    assert.equal(made.status, 201, made.text)
    assert.deepEqual([made.json.accepted, asked], [5, ['/c.png']])
    const rows = Array.from({ length: 18 }, (_, index) => ({ 'load0.image': { url: `${source.url}/${index}.png` } }))
    const refused = await post('/api/v2/jobs/batch', { workflow, rows })
    assert.match(refused.text, /16 addresses at most/)
    assert.equal(asked.length, 16)
  })

  test('is taken by the older API as well', async () => {
    const made = await post('/api/prompt', { prompt: showing({ url: `${source.url}/d.png` }) })
    assert.equal(made.status, 200, made.text)
    assert.deepEqual(asked, ['/d.png'])
  })

  test('is judged by a dry run without a fetch', async () => {
    const tried = await post('/api/v2/jobs/validate', { workflow: showing({ url: `${source.url}/e.png` }) })
    assert.deepEqual([tried.status, tried.json.is_accepted, asked], [200, true, []])
  })

  test('is dropped, with its fetches, when its caller leaves', async () => {
    const graph = showing({ url: `${source.url}/held.png` })
    const headers = { 'content-type': 'application/json' }
    for (const [path, member] of [
      ['/api/v2/jobs', 'workflow'],
      ['/api/prompt', 'prompt'],
    ]) {
      const leaving = new AbortController()
      asked = []
      held = []
      const body = JSON.stringify({ [member]: graph })
      const sent = fetch(service.url + path, { method: 'POST', headers, body, signal: leaving.signal })
      const [response] = await waitUntil(() => (held.length > 0 ? held : null))
      leaving.abort()
      await assert.rejects(sent)
      await waitUntil(() => response.destroyed)
    }
  })
})

test('no workflow may name an address unless the operator says so, though endpoints may', async () => {
  for (const inputUrls of ['auto', 'public']) {
    await using service = await startTestApp({ settings: { inputUrls } })
    const client = new CheckedClient(service.url)
    const body = JSON.stringify({ workflow: showing({ url: 'https://files.example/a.png' }) })
    for (const path of ['/api/v2/jobs', '/api/v2/jobs/validate']) {
      const refused = await client.call(path, { method: 'POST', body })
      assert.match(refused.text, /Node load0, input image: workflows may not name files by their address here/)
    }
  }
})

test('the service never fetches from itself, though its own address be listed', async () => {
  const port = await findFreePort()
  const own = `http://127.0.0.1:${port}`
  await using service = await startTestApp({ settings: { port: String(port), inputUrls: `public,${own},jobs` } })
  assert.equal(service.url, own)
  const body = JSON.stringify({ workflow: showing({ url: `${own}/healthz` }) })
  const refused = await new CheckedClient(service.url).call('/api/v2/jobs', { method: 'POST', body })
  assert.match(refused.text, /fetch_forbidden/)
})
