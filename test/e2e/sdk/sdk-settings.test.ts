/** The official SDK against a service with other settings: a token, a prefix, bounds that are met; and its conformance run. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import * as sdk from '@comfyorg/sdk'
import * as low from '@comfyorg/sdk/low'
import sharp from 'sharp'
import { startTestApp, type TestApp, type TestAppOptions } from '../../support/app/start-app.ts'
import { CheckedClient, node } from '../../support/clients/checked-client.ts'
import { comfy } from '../../support/clients/comfy-client.ts'
import { openEvents } from '../../support/clients/event-reader.ts'
import { recordFetch } from '../../support/clients/recorded-fetch.ts'
import { createFakeEngine, type FakeEngine } from '../../support/engines/fake-engine.ts'

const SAVE = { '1': node('FakeSave') }

interface Parts {
  readonly engine: FakeEngine
  readonly service: TestApp
  readonly client: CheckedClient
}

async function withService(
  settings: TestAppOptions['settings'],
  work: (parts: Parts) => Promise<void>,
  patch?: TestAppOptions['patch'],
): Promise<void> {
  const engine = createFakeEngine()
  await using service = await startTestApp({ settings, patch, overrides: { engine } })
  await work({ engine, service, client: new CheckedClient(service.url) })
  engine.release()
}

describe('the SDK against other settings', () => {
  test('2, 20: with a token it needs that key, and others are refused as such', () =>
    withService({ token: 'the-right-key' }, async ({ service }) => {
      const graph = SAVE as unknown as sdk.WorkflowGraph
      const right = comfy(service.url, { apiKey: 'the-right-key' })
      assert.equal((await right.run(right.workflows.fromJson(graph))).status, 'succeeded')
      for (const wrong of [comfy(service.url), comfy(service.url, { apiKey: 'the-wrong-key' })]) {
        await assert.rejects(wrong.submit(wrong.workflows.fromJson(graph)), sdk.Unauthorized)
        await assert.rejects(wrong.assets.fromBytes(new Uint8Array(1)).commit(), sdk.Unauthorized)
      }
    }))

  test('7, 21: waits out a full queue as long as it is told to, with the same key', () =>
    withService({ workers: '1', maxQueue: '1' }, async ({ service, engine, client }) => {
      await client.accepted({ '1': node('FakeGate') })
      await engine.untilRuns(1)
      const waiting = await client.accepted({ '1': node('FakeSource') })
      const recorded = recordFetch({
        async onAnswer({ status, method }, response) {
          if (method === 'POST' && status === 429) {
            assert.match(response.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
            await client.cancel(waiting.id)
          }
          return response
        },
      })
      const caller = comfy(service.url, { fetch: recorded.fetch })
      const job = await caller.submit(caller.workflows.fromJson(SAVE as unknown as sdk.WorkflowGraph))
      const keys = recorded.exchanges.map(({ headers }) => headers.get('idempotency-key'))
      assert.deepEqual(
        recorded.exchanges.map(({ status }) => status),
        [429, 201],
      )
      assert.equal(keys[0], keys[1])
      engine.openGate()
      assert.equal((await job.result()).status, 'succeeded')
      await assert.rejects(
        async () => {
          await client.accepted({ '1': node('FakeGate') })
          await engine.untilRuns(3)
          await client.accepted(SAVE)
          await new low.ComfyLow(service.url).postJobs(SAVE)
        },
        (error: low.ApiError) => error instanceof low.QueueFull && Number.isInteger(error.retryAfter),
      )
      engine.openGate()
    }))

  test('11, 26: behind a prefix it follows links from the origin and builds the rest from its base', () =>
    withService({ mountPrefix: '/deployment/demo' }, async ({ service, engine }) => {
      for (const base of [`${service.url}/deployment/demo`, `${service.url}/deployment/demo/`]) {
        const recorded = recordFetch({ mountPrefix: '/deployment/demo' })
        const caller = comfy(base, { fetch: recorded.fetch })
        const asset = caller.assets.fromBytes(new Uint8Array(randomBytes(10)), { filename: 'p.png' })
        const graph = { '1': node('FakeSource', { image: asset }), '2': node('FakeSave'), '3': node('FakeGate') }
        const job = await caller.submit(caller.workflows.fromJson(graph as unknown as sdk.WorkflowGraph))
        for await (const event of job.events()) if (event.kind === 'outputReady') engine.openGate()
        await job.result()
        await job.getWorkflow()
        await job.cancel()
        const { url } = await job.outputs[0].getDownloadUrl()
        assert.ok(url.startsWith(`${service.url}/deployment/demo/api/v2/assets/`), url)
        assert.equal((await job.outputs[0].toBytes()).length, job.outputs[0].sizeBytes)
        await asset.delete()
        assert.ok(recorded.exchanges.every(({ path, status }) => path.startsWith('/api/v2/') && status < 405))
      }
      assert.equal((await fetch(`${service.url}/api/v2/jobs`)).status, 404)
    }))

  test('14: over the stream limit it asks the job and comes back', () =>
    withService(
      {},
      async ({ service, engine, client }) => {
        const { id, urls } = await client.accepted({ '1': node('FakeGate') })
        using occupied = openEvents(service.url, urls.events)
        await occupied.next()
        const recorded = recordFetch({
          async onAnswer({ path, status }, response) {
            if (!path.endsWith('/events')) return response
            assert.equal(status, 429)
            assert.equal(response.headers.get('retry-after'), '5')
            engine.openGate()
            await client.untilStatus(id, 'succeeded')
            return response
          },
        })
        const job = await comfy(service.url, { fetch: recorded.fetch }).jobs.get(id)
        const seen: string[] = []
        for await (const event of job.events()) if (event.kind === 'statusChange') seen.push(event.status)
        assert.deepEqual(seen, ['succeeded'])
      },
      { http: { maxStreams: 1 } },
    ))

  test('28: a walk over the list meets no cursor twice, and every item carries its labels', () =>
    withService({}, async ({ client }) => {
      for (let index = 0; index < 7; index++) await client.accepted(SAVE, { metadata: { walk: 'x' } })
      await client.accepted(SAVE)
      const cursors: string[] = []
      let seen = 0
      let cursor = ''
      do {
        const { json } = await client.call(`/api/v2/jobs?limit=2&metadata[walk]=x${cursor && `&cursor=${cursor}`}`)
        for (const job of json.jobs) assert.equal(job.metadata.walk, 'x')
        seen += json.jobs.length
        cursor = json.next_cursor ?? ''
        cursors.push(cursor)
      } while (cursor !== '')
      assert.equal(seen, 7)
      assert.equal(new Set(cursors).size, cursors.length)
    }))
})

describe('29, 30: the live conformance run', () => {
  let service: TestApp
  let folder: string
  let picture: Buffer
  before(async () => {
    service = await startTestApp()
    folder = await mkdtemp(join(tmpdir(), 'atelier-conformance-'))
    picture = await sharp({ create: { width: 512, height: 512, channels: 3, background: '#804020' } })
      .png()
      .toBuffer()
    await writeFile(join(folder, 'conformance.png'), picture)
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })

  test('runs LoadImage, ImageInvert, SaveImage by bare name and by handle, and the stream agrees with the poll', async () => {
    const recorded = recordFetch()
    const client = comfy(service.url, { fetch: recorded.fetch, clientInfo: 'conformance' })
    const graph = (image: unknown) =>
      client.workflows.fromJson({
        '1': node('LoadImage', { image }),
        '2': node('ImageInvert', { image: ['1', 0] }),
        '3': node('SaveImage', { images: ['2', 0], filename_prefix: 'conformance' }),
      } as unknown as sdk.WorkflowGraph)
    const handles = [1, 2].map(() => client.assets.fromFile(join(folder, 'conformance.png')))
    const ids = [await handles[0].commit(), await handles[1].commit()]
    assert.equal(ids[0], ids[1])

    const byName = await client.run(graph('conformance.png'))
    const file = await byName.getOutputs('3')[0].toFile(join(folder, 'out.png'))
    const { width, height, format } = await sharp(await readFile(file)).metadata()
    assert.deepEqual([width, height, format], [512, 512, 'png'])

    const job = await client.submit(graph(handles[0]))
    const events: sdk.ComfyEvent[] = []
    for await (const event of job.events()) events.push(event)
    assert.equal(events[0].kind, 'statusChange')
    const output = events.findIndex(({ kind }) => kind === 'outputReady')
    assert.ok(output > 0 && output < events.length - 1)
    const last = events.at(-1)
    assert.equal(last?.kind === 'statusChange' && last.status, 'succeeded')
    assert.equal((await client.jobs.get(job.id)).status, 'succeeded')
    for (const { path, headers } of recorded.exchanges) {
      assert.match(headers.get('user-agent') ?? '', /^comfy-sdk-typescript\/0\.1\.9 .* app\/conformance$/, path)
    }
  })
})
