/** What becomes of an image client's request when its run fails, takes long, is not paid for or is sent twice. Never more than one job. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import OpenAI, { APIError } from 'openai'
import sharp from 'sharp'
import { type SharedApp, startShared, type Tenant } from '../../../../test/support/app/start-shared.ts'
import { call } from '../../../../test/support/clients/call.ts'
import { node } from '../../../../test/support/clients/checked-client.ts'
import { createManualTicker } from '../../../../test/support/manual-ticker.ts'
import { waitUntil } from '../../../../test/support/wait-until.ts'
import type { SurfaceParts } from '../../kit/surface-parts.ts'

const SAVE = node('FakeSave', { text: 'picture ' })
const GRAPHS = {
  plain: { '1': node('FakeSource'), '2': SAVE },
  gated: { '1': node('FakeGate'), '2': SAVE },
  failing: { '1': node('FakeSource'), '2': SAVE, '3': node('FakeFail') },
}
const DECLARATION = { only: true, inputs: { prompt: { from: '2.text' } } }

describe('a request of an image client', () => {
  const ticker = createManualTicker()
  let app: SharedApp
  let parts: SurfaceParts
  let tenant: Tenant
  let client: OpenAI
  let count = 0
  before(async () => {
    const surfaceParts = (given: SurfaceParts): SurfaceParts => {
      parts = { ...given, endpoints: { ...given.endpoints, ticker } }
      return parts
    }
    const prices = JSON.stringify({ pools: { '*': { perSecondMicros: 1000, holdMicros: 1000 } } })
    app = await startShared({ prices, workers: '4' }, { overrides: { surfaceParts } })
  })
  after(() => app[Symbol.asyncDispose]())
  // Each with an account of its own, so that its jobs can be counted.
  beforeEach(async () => {
    count += 1
    tenant = await open(`tenant-${count}`)
    client = clientOf(tenant)
  })

  async function open(id: string, limits: object = {}): Promise<Tenant> {
    const made = await app.account(id, limits)
    for (const [name, file] of Object.entries(GRAPHS)) {
      const body = JSON.stringify({ name, file, declaration: DECLARATION })
      const published = await made.call('/api/v2/endpoints', { method: 'POST', body })
      assert.equal(published.status, 201, published.text)
    }
    return made
  }
  const clientOf = ({ key }: Tenant) => new OpenAI({ baseURL: `${app.url}/v1`, apiKey: key })
  const jobsOf = async ({ call: ask }: Tenant) =>
    (await ask('/api/v2/jobs?limit=100')).json.jobs as { id: string; status: string }[]
  const untilRunning = () =>
    waitUntil(async () => (await jobsOf(tenant)).filter(({ status }) => status === 'running').length === 1)
  const refused = (asked: Promise<unknown>): Promise<APIError> =>
    asked.then(
      () => assert.fail('it was answered'),
      (error: unknown) => {
        assert.ok(error instanceof APIError, String(error))
        return error
      },
    )
  const textOf = ({ data }: OpenAI.ImagesResponse) => Buffer.from(data?.[0]?.b64_json ?? '', 'base64').toString()

  test('that fails is answered with what went wrong, and is not sent again', async () => {
    const error = await refused(client.images.generate({ model: 'failing', prompt: 'x' }))
    assert.deepEqual([error.status, error.code, error.type], [500, 'server_error', 'server_error'])
    const [job] = await jobsOf(tenant)
    assert.match(error.message, new RegExp(`^500 the job ${job?.id} made no picture: `))
    assert.equal((await jobsOf(tenant)).length, 1)
    const whole = await refused(client.images.generate({ model: 'failing', prompt: 'x', n: 2 }))
    assert.equal(whole.status, 500)
    assert.equal((await jobsOf(tenant)).length, 3)
  })

  test('that is not paid for is refused as a quota, and is not sent again', async () => {
    const poor = await open('poor', { creditFloorMicros: 0 })
    for (const n of [1, 2]) {
      let sends = 0
      const counting = new OpenAI({
        ...{ baseURL: `${app.url}/v1`, apiKey: poor.key },
        fetch: (input, init) => {
          sends += 1
          return fetch(input, init)
        },
      })
      const error = await refused(counting.images.generate({ model: 'plain', prompt: 'x', n }))
      assert.deepEqual(
        [error.status, error.code, error.type, sends],
        [429, 'insufficient_quota', 'insufficient_quota', 1],
      )
    }
    assert.deepEqual(await jobsOf(poor), [])
  })

  test('with a bad key, or one that may not run endpoints, is refused', async () => {
    const stranger = new OpenAI({ baseURL: `${app.url}/v1`, apiKey: 'sk-nobody' })
    const unknown = await refused(stranger.images.generate({ model: 'plain', prompt: 'x' }))
    assert.deepEqual([unknown.status, unknown.code], [401, 'invalid_api_key'])
    const { json } = await app.admin('POST', `/accounts/${tenant.id}/keys`, { scopes: ['jobs:read'] })
    const reader = new OpenAI({ baseURL: `${app.url}/v1`, apiKey: json.text })
    assert.equal((await refused(reader.models.list())).status, 403)
    const other = await open('other')
    await tenant.call('/api/v2/endpoints/plain', { method: 'PATCH', body: JSON.stringify({ models: ['dall-e'] }) })
    assert.equal((await refused(clientOf(other).images.generate({ model: 'dall-e', prompt: 'x' }))).status, 404)
  })

  test('that takes longer than an answer is held gets the id of the job, which goes on; the same request joins it', async () => {
    let isAnswered = false
    const asked = refused(client.images.generate({ model: 'gated', prompt: 'slow ' })).finally(() => {
      isAnswered = true
    })
    await untilRunning()
    // When the answer begins to be held cannot be seen from here: five minutes pass now and then until it is given, and never the hour
    // after which the job is no longer looked at.
    let looks = 0
    await waitUntil(() => {
      if (looks++ % 50 === 0 && looks < 500) ticker.advance(300_000)
      return isAnswered
    })
    const error = await asked
    const [job] = await jobsOf(tenant)
    assert.deepEqual([error.status, error.code], [504, 'timeout'])
    assert.match(error.message, new RegExp(`the job ${job?.id} takes longer than 300 s and goes on`))
    const again = client.images.generate({ model: 'gated', prompt: 'slow ' })
    app.engine.openGate()
    assert.equal(textOf(await again), 'slow 0')
    assert.deepEqual(
      (await jobsOf(tenant)).map(({ id, status }) => [id, status]),
      [[job?.id, 'succeeded']],
    )
  })

  test('whose client leaves goes on', async () => {
    const gone = new AbortController()
    const left = client.images
      .generate({ model: 'gated', prompt: 'gone ' }, { signal: gone.signal })
      .catch(() => 'left')
    await untilRunning()
    gone.abort()
    assert.equal(await left, 'left')
    app.engine.openGate()
    await waitUntil(async () => (await jobsOf(tenant))[0]?.status === 'succeeded')
  })

  test('that is sent twice at the same time makes one job; one that differs makes its own', async () => {
    const twice = [1, 2].map(() => client.images.generate({ model: 'gated', prompt: 'same ' }))
    await untilRunning()
    app.engine.openGate()
    assert.deepEqual((await Promise.all(twice)).map(textOf), ['same 0', 'same 0'])
    assert.equal((await jobsOf(tenant)).length, 1)
    await client.images.generate({ model: 'plain', prompt: 'same ' })
    assert.equal((await jobsOf(tenant)).length, 2)
  })

  test('with a key of its own is answered with the same job whenever it comes again', async () => {
    const ask = (prompt: string) =>
      client.images.generate({ model: 'plain', prompt }, { headers: { 'Idempotency-Key': 'the only one' } })
    assert.equal(textOf(await ask('once ')), 'once 0')
    assert.equal(textOf(await ask('once ')), 'once 0')
    assert.equal((await jobsOf(tenant)).length, 1)
    assert.equal((await refused(ask('twice '))).status, 400)
  })

  test('for a stream shows previews on the way, and an error behind the first of them as an event', async () => {
    const preview = await sharp({ create: { width: 8, height: 4, channels: 3, background: '#fff' } })
      .jpeg()
      .toBuffer()
    const show = (jobId: string) =>
      parts.bus.publishLive({
        jobId,
        accountId: tenant.id,
        event: {
          ...{ type: 'preview', nodeId: '1', displayNodeId: '1', parentNodeId: null, realNodeId: '1' },
          ...{ contentType: 'image/jpeg', bytes: preview },
        } as never,
      })
    const shown = async (prompt: string) => {
      const asked = client.images.generate({ model: 'gated', prompt, stream: true, partial_images: 1 })
      await untilRunning()
      const [job] = (await jobsOf(tenant)).filter(({ status }) => status === 'running')
      // The request is answered with its first event.
      const timer = setInterval(() => show(job?.id as string), 20)
      const stream = await asked.finally(() => clearInterval(timer))
      return { stream: stream[Symbol.asyncIterator](), id: job?.id as string }
    }
    const { stream } = await shown('seen ')
    const { value: first } = await stream.next()
    assert.deepEqual(
      [first?.type, first?.output_format, first?.size, (first as { partial_image_index?: number }).partial_image_index],
      ['image_generation.partial_image', 'jpeg', '8x4', 0],
    )
    app.engine.openGate()
    const { value: last } = await stream.next()
    assert.equal(last?.type, 'image_generation.completed')
    assert.equal(Buffer.from(last?.b64_json ?? '', 'base64').toString(), 'seen 0')
    assert.equal((await stream.next()).done, true)

    const broken = await shown('broken ')
    await broken.stream.next()
    await tenant.call(`/api/v2/jobs/${broken.id}/cancel`, { method: 'POST' })
    const error = await refused(broken.stream.next() as Promise<unknown>)
    assert.match(error.message, /it is canceled/)
    const failed = await refused(client.images.generate({ model: 'failing', prompt: 'x', stream: true }))
    assert.equal(failed.status, 500)
  })

  test('that is held while the service stops is told which job goes on', async () => {
    await using own = await startShared({}, {})
    const key = (await own.account('someone')).key
    const headers = { authorization: `Bearer ${key}` }
    const body = JSON.stringify({ name: 'gated', file: GRAPHS.gated, declaration: DECLARATION })
    assert.equal((await call(own.url, '/api/v2/endpoints', { method: 'POST', headers, body })).status, 201)
    const asked = refused(new OpenAI({ baseURL: `${own.url}/v1`, apiKey: key }).images.generate({ prompt: 'x' }))
    await own.engine.untilRuns(1)
    const closed = own.service.app[Symbol.asyncDispose]()
    const error = await asked
    own.engine.release()
    await closed
    assert.equal(error.status, 503, error.message)
    assert.match(error.message, /the job [0-9a-f-]{36} goes on/)
  })
})
