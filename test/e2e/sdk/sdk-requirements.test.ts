/** What the official SDKs require of a server, point by point, with the TypeScript package itself wherever it can tell. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import * as sdk from '@comfyorg/sdk'
import * as low from '@comfyorg/sdk/low'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { call } from '../../support/clients/call.ts'
import { CheckedClient, node } from '../../support/clients/checked-client.ts'
import { comfy } from '../../support/clients/comfy-client.ts'
import { recordFetch } from '../../support/clients/recorded-fetch.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const SAVE = { '1': node('FakeSave') }
const UNKNOWN_JOB = '0199b3f4-1d2e-7a3b-8c4d-5e6f70819234'

describe('the SDK', () => {
  let service: TestApp
  let client: CheckedClient
  let raw: low.ComfyLow
  const engine = createFakeEngine()
  before(async () => {
    service = await startTestApp({ overrides: { engine } })
    client = new CheckedClient(service.url)
    raw = new low.ComfyLow(service.url)
  })
  after(() => service[Symbol.asyncDispose]())

  const workflowOf = (graph: object) => comfy(service.url).workflows.fromJson(graph as sdk.WorkflowGraph)

  test('1, 22: gets exactly the statuses that it takes for success, with a body wherever it parses one', async () => {
    const recorded = recordFetch()
    const recording = new low.ComfyLow(service.url, undefined, { fetch: recorded.fetch })
    const bytes = new Blob([randomBytes(100)])
    const asset = await recording.postAssets(bytes, 'image/png', 'a.png', {
      tags: ['x', 'y'],
      idempotencyKey: randomUUID(),
    })
    await recording.postAssets(bytes, 'image/png', 'a.png')
    await recording.assetFromHash(asset.hash ?? '', { filePath: 'b.png' })
    await recording.assetFromHash(asset.hash ?? '', { filePath: 'b.png' })
    assert.equal(await recording.headAssetByHash(asset.hash ?? ''), true)
    assert.equal(await recording.headAssetByHash(`blake3:${'0'.repeat(64)}`), false)
    await recording.getAsset(asset.id)
    await recording.getAssetContent(asset.id)
    await recording.getAssetContent(asset.id, { range: [0, 9] })
    const job = await recording.postJobs(SAVE)
    await recording.getJob(job.id)
    for await (const _ of recording.getJobEvents(job.id));
    await recording.getJobWorkflow(job.id)
    await recording.cancelJob(job.id)
    await recording.deleteAsset(asset.id)
    assert.deepEqual(
      recorded.exchanges.map(({ method, status }) => `${method} ${status}`),
      [
        ...['POST 201', 'POST 200', 'POST 201', 'POST 200', 'HEAD 200', 'HEAD 404', 'GET 200', 'GET 200', 'GET 206'],
        ...['POST 201', 'GET 200', 'GET 200', 'GET 200', 'POST 200', 'DELETE 204'],
      ],
    )
  })

  test('2: a key that nobody asked for is ignored', async () => {
    const job = await comfy(service.url, { apiKey: 'comfyui-0123456789' }).run(workflowOf(SAVE))
    assert.equal(job.status, 'succeeded')
  })

  test('3: the headers of either SDK are those of a program, not of a foreign page', async () => {
    const agents = [
      'comfy-sdk-typescript/0.1.9 (node v20.1.0) app/mine',
      'comfy-sdk-python/0.5.0 (CPython 3.12; httpx)',
    ]
    for (const agent of agents) {
      const headers = {
        'user-agent': agent,
        'sec-fetch-mode': 'cors',
        'accept-encoding': 'gzip, deflate',
        accept: '*/*',
      }
      const answer = await client.call('/api/v2/jobs', { headers })
      assert.equal(answer.status, 200)
      assert.equal(answer.headers['content-encoding'], undefined)
    }
  })

  test('4, 5: commits by hash first, uploads only what is not there, with one key per handle', async () => {
    const recorded = recordFetch()
    const client = comfy(service.url, { fetch: recorded.fetch })
    const bytes = new Uint8Array(randomBytes(50_000))
    const first = client.assets.fromBytes(bytes, { filename: 'commit.png' })
    await first.commit()
    assert.equal(first.createdNew, true)
    assert.deepEqual(
      recorded.exchanges.map(({ method, status }) => [method, status]),
      [
        ['HEAD', 404],
        ['POST', 201],
      ],
    )
    assert.match(recorded.exchanges[0].path, /by-hash\/blake3%3A/)
    assert.ok(recorded.exchanges[1].headers.has('idempotency-key'))
    recorded.clear()
    const second = client.assets.fromBytes(bytes, { filename: 'commit.png' })
    await second.commit()
    assert.deepEqual([second.id, second.createdNew], [first.id, false])
    assert.deepEqual(
      recorded.exchanges.map(({ method, status, body }) => [method, status, body?.file_path ?? null]),
      [
        ['HEAD', 200, null],
        ['POST', 200, 'commit.png'],
      ],
    )
    const stream = await client.assets.fromStream(new Blob([bytes]).stream(), { filename: 'other.png' })
    await stream.commit()
    assert.equal(stream.createdNew, false, 'nothing was uploaded')
    assert.notEqual(stream.id, first.id)
    const known = await client.assets.get(first.id ?? '')
    assert.deepEqual([known.filePath, known.createdNew, known.expiresAt], ['commit.png', null, undefined])
  })

  test('6: sends a partner key only when it has one, and a fresh idempotency key each time', async () => {
    const recorded = recordFetch()
    const client = comfy(service.url, { fetch: recorded.fetch })
    const runs = engine.runs.length
    await client.run(workflowOf(SAVE))
    await client.run(workflowOf(SAVE), { apiKey: 'partner-key' })
    const submits = recorded.exchanges.filter(({ body }) => body !== null)
    assert.deepEqual(
      submits.map(({ body }) => body.extra_data),
      [undefined, { api_key_comfy_org: 'partner-key' }],
    )
    assert.equal(new Set(submits.map(({ headers }) => headers.get('idempotency-key'))).size, 2)
    assert.deepEqual(
      engine.runs.slice(runs).map(({ extraData }) => extraData?.['api_key_comfy_org']),
      [undefined, 'partner-key'],
    )
    const used = randomUUID()
    const job = await client.submit(workflowOf(SAVE), { idempotencyKey: used })
    await assert.rejects(client.submit(workflowOf(SAVE), { idempotencyKey: used }), (error) => {
      assert.ok(error instanceof sdk.IdempotencyKeyReuse)
      assert.deepEqual(error.details, { job_id: job.id })
      return true
    })
  })

  test('10: polls many jobs at once without ever meeting a 429 or a 5xx', async () => {
    const client = comfy(service.url)
    const jobs = await Promise.all(Array.from({ length: 40 }, () => client.submit(workflowOf(SAVE))))
    await Promise.all(jobs.map((job) => job.result()))
    const polls = await Promise.all(Array.from({ length: 400 }, (_, index) => raw.getJob(jobs[index % 40].id)))
    assert.ok(polls.every(({ status }) => status === 'succeeded'))
  })

  test('12, 15, 16: reads the stream to its first terminal status, outputs before it, progress rising', async () => {
    const client = comfy(service.url)
    const graph = { '1': node('FakeSampler', { steps: 6 }), '2': node('FakeSave', { count: 3 }), '3': node('FakeGate') }
    const job = await client.submit(workflowOf(graph))
    const kinds: string[] = []
    const outputs: string[] = []
    let progress = 0
    for await (const event of job.events()) {
      kinds.push(event.kind)
      if (event.kind === 'progress') {
        assert.ok(event.value >= progress && event.value <= 1)
        progress = event.value
      }
      if (event.kind === 'outputReady') {
        outputs.push(event.output.id)
        assert.equal((await event.output.toBytes()).length, event.output.sizeBytes)
        if (outputs.length === 3) engine.openGate()
      }
      if (event.kind === 'preview') assert.equal(Buffer.from(event.data).toString().slice(0, 5), 'step ')
    }
    await job.refresh()
    assert.deepEqual(
      outputs,
      job.outputs.map(({ id }) => id),
    )
    assert.deepEqual([kinds[0], kinds.at(-1)], ['statusChange', 'statusChange'])
    for (const kind of ['progress', 'preview', 'outputReady']) assert.ok(kinds.includes(kind), `${kind} was never seen`)
    assert.ok(!kinds.includes('log'))
  })

  test('14: finds the end after a stream that broke off, by asking and by connecting again', async () => {
    let cuts = 0
    const recorded = recordFetch({
      onAnswer({ path }, response) {
        if (!path.endsWith('/events') || cuts > 0) return response
        cuts++
        return new Response(response.body?.pipeThrough(cutAfterFirstChunk()), response)
      },
    })
    const job = await comfy(service.url, { fetch: recorded.fetch }).submit(workflowOf({ '1': node('FakeGate') }))
    const statuses: string[] = []
    for await (const event of job.events()) {
      if (event.kind !== 'statusChange') continue
      statuses.push(event.status)
      if (recorded.lines().filter((line) => line.includes('/events')).length === 2) engine.openGate()
    }
    assert.equal(cuts, 1)
    assert.equal(statuses.at(-1), 'succeeded')
  })

  test('17: is given the content’s own URL without reading it, and may hang up in the middle at no cost', async () => {
    const asset = await raw.postAssets(new Blob([randomBytes(8_000_000)]), 'image/png', 'large.png')
    const { url, expiresAt } = await raw.getAssetContentUrl(asset.id)
    assert.deepEqual([url, expiresAt], [asset.url, null])
    for (let time = 0; time < 30; time++) {
      const response = await raw.getAssetContent(asset.id)
      const reader = response.body?.getReader()
      await reader?.read()
      await reader?.cancel()
    }
    assert.equal((await (await raw.getAssetContent(asset.id)).arrayBuffer()).byteLength, 8_000_000)
  })

  test('18: gets exactly the slice that it asks for', async () => {
    const bytes = randomBytes(1000)
    const asset = await raw.postAssets(new Blob([bytes]), 'image/png', 'slice.png')
    for (const range of [
      [0, 0],
      [0, 4],
      [10, 19],
      [999, 999],
      [990, 2000],
    ] as const) {
      const response = await raw.getAssetContent(asset.id, { range })
      assert.equal(response.status, 206)
      assert.deepEqual(Buffer.from(await response.arrayBuffer()), bytes.subarray(range[0], range[1] + 1))
    }
    const job = await comfy(service.url).run(workflowOf({ '1': node('FakeSave', { text: 'abcdef' }) }))
    assert.equal(Buffer.from(await job.outputs[0].toBytes({ range: [1, 3] })).toString(), 'bcd')
  })

  test('19: takes over the job that a cancel answers with', async () => {
    const client = comfy(service.url)
    const job = await client.submit(workflowOf({ '1': node('FakeHang') }))
    for await (const event of job.events()) if (event.kind === 'statusChange' && event.status === 'running') break
    await job.cancel()
    assert.match(job.status, /^cancel(ing|ed)$/)
    await job.wait(10_000)
    assert.equal(job.status, 'canceled')
    await assert.rejects(job.result(), sdk.JobFailed)
    assert.equal((await job.cancel()).status, 'canceled')
  })

  test('20, 24: maps every refusal to its own class, with code, status and details', async () => {
    const submit = (graph: object) => comfy(service.url).submit(workflowOf(graph))
    const missing = { __type: 'core/ASSET', info: { id: randomUUID() } }
    const ui = { nodes: [{ id: 1, type: 'SaveImage' }], links: [] }
    const wrongHash = `blake3:${'0'.repeat(64)}`
    const upload = (options: object) => raw.postAssets(new Blob(['x']), 'image/png', 'x.png', options)
    const refusals: [
      act: () => Promise<unknown>,
      type: new (...args: never[]) => Error,
      code: string,
      status: number,
    ][] = [
      [() => submit({ '1': node('Nope') }), sdk.InvalidWorkflow, 'invalid_workflow', 422],
      [() => submit(ui), sdk.WorkflowFormatUi, 'workflow_format_ui', 422],
      [() => raw.postJobs({ ...ui, last_node_id: 1 }), low.WorkflowFormatUi, 'workflow_format_ui', 422],
      [() => submit({ '1': node('FakeSource', { x: missing }) }), sdk.MissingAsset, 'missing_asset', 422],
      [() => upload({ expectedHash: wrongHash }), low.HashMismatch, 'hash_mismatch', 409],
      [() => raw.assetFromHash(wrongHash), low.BlobNotFound, 'blob_not_found', 404],
      [() => comfy(service.url).jobs.get(UNKNOWN_JOB), sdk.NotFound, 'not_found', 404],
      [() => comfy(service.url).assets.get(UNKNOWN_JOB), sdk.NotFound, 'not_found', 404],
      [() => comfy(service.url).assets.delete(UNKNOWN_JOB), sdk.NotFound, 'not_found', 404],
      [() => raw.getJobWorkflow(UNKNOWN_JOB), low.NotFound, 'not_found', 404],
      [() => raw.cancelJob('..%2F..%2Ffree'), low.NotFound, 'not_found', 404],
      [() => raw.postJobs(SAVE, { idempotencyKey: 'k'.repeat(256) }), low.ApiError, 'invalid_request', 400],
    ]
    for (const [act, type, code, httpStatus] of refusals) {
      await assert.rejects(act, (error: sdk.ComfyError) => {
        assert.ok(error instanceof type, `${code} became ${error}`)
        assert.deepEqual([error.code, error.httpStatus], [code, httpStatus])
        return true
      })
    }
  })

  test('23: its schemas accept a job in every state, and what stands in events', async () => {
    const gate = await raw.postJobs({
      '1': node('FakeSampler', { steps: 3 }),
      '2': node('FakeSave'),
      '3': node('FakeGate'),
    })
    low.schemas.zJob.parse(gate)
    low.schemas.zJob.parse(await client.until(gate.id, ({ outputs }) => outputs.length === 1))
    engine.openGate()
    const states = [
      await client.untilStatus(gate.id, 'succeeded'),
      await client.run({ '1': node('FakeFail') }),
      (await client.cancel((await client.accepted({ '1': node('FakeHang') })).id)).json,
    ]
    for (const job of states) {
      low.schemas.zJob.parse(job)
      assert.ok(!Object.values(job.metrics).some((value) => value !== null && !Number.isInteger(value)))
      for (const date of [job.created_at, job.expires_at])
        assert.match(date, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    }
  })

  test('25: every answer carries a request id under the name that the SDKs read', async () => {
    for (const path of [
      '/api/v2/health',
      '/api/v2/jobs',
      `/api/v2/jobs/${UNKNOWN_JOB}`,
      '/api/v2/nothing',
      '/nothing',
    ]) {
      assert.match(String((await call(service.url, path)).headers['x-comfy-request-id']), /^[0-9a-f-]{36}$/)
    }
  })

  test('27: the logs are where the link says, and answer 200 or 204', async () => {
    const job = await client.run({ '1': node('FakeLog', { text: 'hello' }) })
    assert.match(job.urls.logs, /^\/.*\/api\/|^\/api\//)
    assert.equal((await client.call(job.urls.logs)).json.text, 'hello')
  })
})

function cutAfterFirstChunk(): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk)
      controller.terminate()
    },
  })
}
