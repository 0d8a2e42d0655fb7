/** Files that the service fetches into the library: looked at, waited for or followed, cancelled, and refused with a reason. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { type Json, LegacyClient } from '../../support/clients/legacy-client.ts'
import { type Frame, isText, openSocket } from '../../support/clients/test-socket.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { type HttpFake, startHttpFake } from '../../support/providers/http-fake.ts'
import { waitUntil } from '../../support/wait-until.ts'

const BYTES = Buffer.alloc(2000, 'x')

describe('a file that the service fetches', () => {
  let source: HttpFake
  let service: TestApp
  let client: LegacyClient
  const held: ServerResponse[] = []
  before(async () => {
    source = await startHttpFake((request, response) => {
      const named = { 'content-disposition': 'attachment; filename="said/by its server.safetensors"' }
      if (request.url === '/moved') return void response.writeHead(302, { location: '/named' }).end()
      if (request.url === '/missing') return void response.writeHead(404).end()
      if (request.url === '/locked') return void response.writeHead(401).end()
      response.writeHead(200, {
        ...{ 'content-type': 'application/octet-stream', 'content-length': BYTES.length },
        ...(request.url === '/named' && named),
      })
      if (!request.url?.startsWith('/held')) return void response.end(BYTES)
      response.write(BYTES.subarray(0, 1000))
      held.push(response)
    })
    service = await startTestApp({ settings: { inputUrls: source.url }, overrides: { engine: createFakeEngine() } })
    client = new LegacyClient(service.url)
  })
  after(async () => {
    for (const response of held) response.destroy()
    await service?.[Symbol.asyncDispose]()
    await source?.[Symbol.asyncDispose]()
  })

  const at = (path: string) => `${source.url}${path}`
  const download = (path: string, more: object = {}) =>
    client.post('/api/assets/download', { source_url: at(path), tags: ['input'], ...more })
  const untilEnded = (id: string): Promise<Json> =>
    waitUntil(async () => {
      const { json } = await client.get(`/api/tasks/${id}`)
      return json.status === 'running' ? null : json
    })

  test('is looked at before: where it is, how large, and whether it would be taken as a model', async () => {
    const { json } = await client.get(`/api/assets/remote-metadata?url=${encodeURIComponent(at('/moved'))}`)
    assert.deepEqual(json, {
      ...{ content_length: BYTES.length, final_url: at('/named'), content_type: 'application/octet-stream' },
      ...{ filename: 'by its server.safetensors', name: 'by its server', tags: [] },
      validation: { is_valid: true, errors: [], warnings: [] },
    })
    const { json: picture } = await client.get(`/api/assets/remote-metadata?url=${encodeURIComponent(at('/a.ckpt'))}`)
    assert.deepEqual([picture.validation.is_valid, picture.validation.errors[0].code], [false, 'FORMAT_NOT_ALLOWED'])
  })

  test('goes on by itself, tells the sockets of its account how far it is, and becomes an asset', async () => {
    const socket = await openSocket(new WebSocket(`${service.url.replace('http', 'ws')}/ws?clientId=c`))
    const source_url = at('/held.png')
    const begun = await download('/held.png', { user_metadata: { source_url } })
    assert.equal(begun.status, 202, begun.text)
    const id = begun.json.task_id
    const isNews = (frame: Frame) => isText(frame, 'asset_download') && frame.data['task_id'] === id
    await socket.until((frame) => isNews(frame) && isText(frame, 'asset_download') && frame.data['progress'] === 50)
    assert.equal((await client.get(`/api/tasks/${id}`)).json.status, 'running')
    held.shift()?.end(BYTES.subarray(1000))
    const task = await untilEnded(id)
    assert.deepEqual([task.status, task.result.success, task.result.bytes_downloaded], ['completed', true, 2000])
    await socket.until(
      (frame) => isNews(frame) && isText(frame, 'asset_download') && frame.data['status'] === 'completed',
    )
    await socket.close()
    const { json } = await client.get(`/api/assets/${task.result.asset_id}`)
    assert.deepEqual([json.name, json.size, json.tags], ['held.png', 2000, ['input']])
    const again = await download('/held.png', { user_metadata: { source_url } })
    assert.deepEqual([again.status, again.json.id, again.json.created_new], [200, json.id, false])
    assert.equal((await client.call(`/api/tasks/${id}`, { method: 'DELETE' })).status, 409)
  })

  test('is waited for where its address is sent as a new asset', async () => {
    const made = await client.post('/api/assets', { url: at('/b.png'), name: 'mine.png', tags: ['input'] })
    assert.deepEqual([made.status, made.json.name, made.json.size], [200, 'mine.png', 2000])
  })

  test('that is cancelled leaves nothing behind', async () => {
    const { json } = await download('/held-and-cancelled.png')
    assert.equal((await client.call(`/api/tasks/${json.task_id}`, { method: 'DELETE' })).status, 204)
    assert.equal((await untilEnded(json.task_id)).status, 'cancelled')
    assert.equal((await client.get('/api/assets?name_contains=cancelled')).json.total, 0)
  })

  test('that breaks off has failed, and says why', async () => {
    const { json } = await download('/held-and-torn.png')
    await waitUntil(() => held.length > 0)
    for (const response of held.splice(0)) response.destroy()
    const task = await untilEnded(json.task_id)
    assert.deepEqual([task.status, task.result.success], ['failed', false])
    assert.match(task.error_message, /^127\.0\.0\.1/)
  })

  test('is refused with its reason before anything is fetched', async () => {
    const cases = [
      ['/missing', 404, 'SOURCE_NOT_FOUND'],
      ['/locked', 403, 'SOURCE_NEEDS_CREDENTIALS'],
    ] as const
    for (const [path, status, code] of cases) {
      const answer = await download(path)
      assert.deepEqual([answer.status, answer.json.code], [status, code], path)
    }
    const elsewhere = await client.post('/api/assets/download', { source_url: 'https://huggingface.co/x' })
    assert.deepEqual([elsewhere.status, elsewhere.json.code], [400, 'UNSUPPORTED_SOURCE'])
    assert.equal((await download('/a.safetensors', { tags: ['models', 'loras'] })).status, 400, 'no folder for models')
    for (const method of ['GET', 'DELETE'])
      assert.equal((await client.call(`/api/tasks/${crypto.randomUUID()}`, { method })).status, 404)
  })

  test('beside a few others waits for none: one too many is refused for now', async () => {
    const begun = await Promise.all(Array.from({ length: 5 }, (_, index) => download(`/held-${index}.png`)))
    assert.deepEqual(begun.map(({ status }) => status).toSorted(), [202, 202, 202, 202, 429])
    for (const { status, json } of begun)
      if (status === 202) await client.call(`/api/tasks/${json.task_id}`, { method: 'DELETE' })
  })

  test('has failed when its service stops, and another start says so', async () => {
    const { json } = await download('/held-to-the-end.png')
    service = await service.restart()
    client = new LegacyClient(service.url)
    const { status, error_message } = (await client.get(`/api/tasks/${json.task_id}`)).json
    assert.deepEqual([status, error_message], ['failed', 'the process that fetched it has ended; begin again'])
  })
})
