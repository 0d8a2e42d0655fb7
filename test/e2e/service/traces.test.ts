/** One trace from the caller's request to the last byte, as a collector hears it: through queue, engine, nodes and providers. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { Log } from '../../../lib/log.ts'
import { pictureGraph } from '../../support/app/fleet-app.ts'
import { ADMIN_TOKEN, joinTestWorker } from '../../support/app/join-worker.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { runAtelier } from '../../support/cli/atelier.ts'
import { type FakeComfy, startFakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import { type HeardSpan, startTraceCollector, type TraceCollector } from '../../support/network/trace-collector.ts'
import { openaiFake } from '../../support/providers/fake-providers/direct.ts'
import { type FakeProvider, startFakeProvider } from '../../support/providers/fake-providers/fake-card.ts'
import { createLoopbackNetwork } from '../../support/providers/loopback-network.ts'
import { waitUntil } from '../../support/wait-until.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CALLER = '00f067aa0ba902b7'
// Jobs are dated in whole milliseconds, requests in fractions of one.
const APART_MS = 3

const stack = new AsyncDisposableStack()
const lines: object[] = []
let collector: TraceCollector
let comfy: FakeComfy
let openai: FakeProvider
let app: TestApp

before(async () => {
  collector = stack.use(await startTraceCollector())
  comfy = stack.use(await startFakeComfy())
  openai = stack.use(await startFakeProvider(openaiFake))
  const directory = await mkdtemp(path.join(tmpdir(), 'atelier-test-'))
  stack.defer(() => rm(directory, { recursive: true, force: true }))
  const providers = path.join(directory, 'providers.json')
  await writeFile(providers, JSON.stringify({ openai: { key: openaiFake.key, base_url: openai.baseUrl } }))
  app = stack.use(
    await startTestApp({
      settings: {
        ...{ otlpEndpoint: `${collector.url}/`, logLevel: 'debug' },
        ...{ providers, comfyui: comfy.url.href, embedded: 'off' },
      },
      env: { OTEL_EXPORTER_OTLP_HEADERS: 'x-key=s%20ecret', OTEL_SERVICE_NAME: 'studio' },
      overrides: { models: { network: createLoopbackNetwork() } },
      log: recordingLog(),
    }),
  )
})
after(() => stack.disposeAsync())

function recordingLog(): Log {
  const note = (fields: object) => void lines.push(fields)
  return { debug: note, info: note, warn: note, error: note, child: recordingLog }
}

async function submit(
  url: string,
  headers: Record<string, string> = {},
  workflow: object = pictureGraph(7),
): Promise<string> {
  const body = JSON.stringify({ workflow })
  const answer = await fetch(`${url}/api/v2/jobs?secret=1`, { method: 'POST', headers, body })
  assert.equal(answer.status, 201)
  return ((await answer.json()) as { id: string }).id
}

const ofJob = (id: string) => (span: HeardSpan) => span.attributes['atelier.job.id'] === id
const nameOf = (span: HeardSpan | undefined) => span?.name ?? 'nothing'

/** By each name, the name of its parent. Every span lies within its parent, as far as its parent waits for it. */
function toTree(traceId: string): Record<string, string> {
  const spans = collector.spans.filter((span) => span.traceId === traceId)
  const byId = new Map(spans.map((span) => [span.spanId, span]))
  const tree: Record<string, string> = {}
  for (const span of spans) {
    const parent = byId.get(span.parentSpanId ?? '')
    tree[span.name] = nameOf(parent)
    if (parent === undefined) continue
    assert.ok(span.startMs >= parent.startMs - APART_MS, `${span.name} begins before ${parent.name}`)
    // A job goes on when its submit is answered, and a server is tidied up when the run is over.
    const isJob = span.name.startsWith('job.') && parent.name === 'job.submit'
    const isWaitedFor = !isJob && span.name !== 'comfyui POST /history'
    if (isWaitedFor) assert.ok(span.endMs <= parent.endMs + APART_MS, `${span.name} ends after ${parent.name}`)
  }
  return tree
}

test('a job over a ComfyUI server is one trace, which continues that of the caller and is passed on to the server', async () => {
  const id = await submit(app.url, { traceparent: `00-${TRACE}-${CALLER}-01`, tracestate: 'vendor=1' })
  const run = await collector.until('job.run', ofJob(id))
  const request = await collector.until('POST /api/v2/jobs', ({ traceId }) => traceId === TRACE)
  assert.equal(request.parentSpanId, CALLER)
  assert.deepEqual([request.kind, request.attributes['http.response.status_code']], [2, 201])
  assert.equal(run.traceId, TRACE)
  assert.equal(run.attributes['atelier.outcome'], 'succeeded')
  const tree = toTree(TRACE)
  const expected = {
    'POST /api/v2/jobs': 'nothing',
    'job.submit': 'POST /api/v2/jobs',
    'workflow.prepare': 'job.submit',
    'job.record': 'job.submit',
    'job.wait': 'job.submit',
    'job.run': 'job.submit',
    'job.claim': 'job.run',
    'job.engine': 'job.run',
    'comfyui POST /prompt': 'job.engine',
    EmptyImage: 'job.engine',
    SaveImage: 'job.engine',
    'output.store': 'job.run',
  }
  for (const [name, parent] of Object.entries(expected)) assert.equal(tree[name], parent, name)
  const prompt = collector.spans.find(({ name }) => name === 'comfyui POST /prompt')
  assert.equal(comfy.traceparents.get('POST /prompt'), `00-${TRACE}-${prompt?.spanId}-01`)
  const claimed = collector.spans.find((span) => span.name === 'job.wait' && span.traceId === TRACE)
  assert.equal(claimed?.endMs, run.startMs)
})

test('a model call is one trace, whose context the provider gets beside its key', async () => {
  const answer = await fetch(`${app.url}/v2/models/openai/gpt-image-1`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'one' },
    body: JSON.stringify({ prompt: 'a lighthouse at night' }),
  })
  assert.equal(answer.status, 200, await answer.text())
  const call = await collector.until('model.call')
  const sent = await collector.until('openai POST', ({ traceId }) => traceId === call.traceId)
  await waitUntil(() => collector.spans.some(({ kind, traceId }) => kind === 2 && traceId === call.traceId))
  const [seen] = openai.requests
  assert.equal(seen.headers['traceparent'], `00-${call.traceId}-${sent.spanId}-01`)
  assert.equal(sent.kind, 3)
  const tree = toTree(call.traceId)
  assert.equal(tree['openai POST'], 'model.submit')
  assert.equal(tree['model.submit'], 'model.call')
  assert.match(tree['model.call'], /^POST /)
})

test('a queued model call stays in the trace of the request that put it in', async () => {
  const traceId = 'd'.repeat(32)
  const answer = await fetch(`${app.url}/v2/models/openai/gpt-image-1/requests`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', traceparent: `00-${traceId}-${CALLER}-01`, tracestate: 'vendor=2' },
    body: JSON.stringify({ prompt: 'a harbour' }),
  })
  assert.equal(answer.status, 201, await answer.text())
  const isOurs = (span: HeardSpan) => span.traceId === traceId
  const submitted = await collector.until('model.submit', isOurs)
  await collector.until('openai POST', isOurs)
  const request = await waitUntil(() => collector.spans.find((span) => isOurs(span) && span.kind === 2) ?? null)
  assert.deepEqual([request.parentSpanId, submitted.parentSpanId], [CALLER, request.spanId])
  assert.equal(openai.requests.at(-1)?.headers['tracestate'], 'vendor=2')
})

test('a model call of a node stays in the trace of its job, in this process and in another one', async () => {
  const settings = { otlpEndpoint: collector.url, sandboxModels: 'on' }
  const workflow = {
    '1': { class_type: 'RunModel', inputs: { model: 'sandbox/image', input: '{"prompt":"x"}' } },
    '2': { class_type: 'SaveImage', inputs: { images: ['1', 1], filename_prefix: 'node' } },
  }
  const run = async (url: string) => {
    const id = await submit(url, {}, workflow)
    const { traceId } = await collector.until('job.run', ofJob(id))
    await collector.until('model.call', (span) => span.traceId === traceId)
    return toTree(traceId)
  }
  await using here = await startTestApp({ settings })
  assert.equal((await run(here.url))['model.call'], 'job.engine')
  const joins = { ...settings, adminToken: ADMIN_TOKEN, joins: 'on' }
  await using service = await startTestApp({ settings: joins, overrides: { engines: [] } })
  await using _worker = await joinTestWorker(service, { settings: { otlpEndpoint: collector.url } })
  const tree = await run(service.url)
  const request = tree['model.call']
  assert.match(request, /^POST \/worker\/v1\/jobs\/.*\/models$/)
  assert.equal(tree[request], 'job.engine')
})

test('a job that another process runs over the built-in engine stays in the trace of its submit', async () => {
  const settings = { otlpEndpoint: collector.url }
  const joins = { ...settings, adminToken: ADMIN_TOKEN, joins: 'on' }
  await using service = await startTestApp({ settings: joins, overrides: { engines: [] } })
  await using _worker = await joinTestWorker(service, { settings })
  const id = await submit(service.url)
  const run = await collector.until('job.run', ofJob(id))
  const request = await collector.until('POST /api/v2/jobs', ({ traceId }) => traceId === run.traceId)
  const tree = toTree(run.traceId)
  assert.equal(request.parentSpanId, null)
  assert.notEqual(run.instance, request.instance)
  assert.deepEqual([tree['job.run'], tree['SaveImage'], tree['output.store']], ['job.submit', 'job.engine', 'job.run'])
})

test('nothing that a caller must keep to himself is told, and what the caller does not want told is not', async () => {
  const silent = '1'.repeat(32)
  const before = await submit(app.url, { traceparent: `00-${silent}-${CALLER}-00`, authorization: 'Bearer word' })
  assert.ok(before)
  await collector.until('job.run', ofJob(await submit(app.url)))
  assert.ok(collector.spans.every(({ traceId }) => traceId !== silent))
  const said = collector.batches.map(({ text }) => text).join('\n')
  assert.doesNotMatch(said, /secret|Bearer|word"|lighthouse/)
  assert.doesNotMatch(said, new RegExp(openaiFake.key))
  const [{ path: posted, headers }] = collector.batches
  assert.deepEqual(
    [posted, headers['x-key'], headers['content-type']],
    ['POST /v1/traces', 's ecret', 'application/x-protobuf'],
  )
  assert.ok(collector.spans.some(({ service }) => service === 'studio'))
})

test('log lines name the trace that they belong to', async () => {
  const traceId = 'c'.repeat(32)
  await submit(app.url, { traceparent: `00-${traceId}-${CALLER}-01` })
  await waitUntil(() => lines.some((line) => 'trace_id' in line && line.trace_id === traceId))
})

test('without a collector, `atelier trace` draws the same from what is stored of a job, or of a model call', async () => {
  // A graph of its own: of one that the server has cached no node runs.
  const id = await submit(app.url, {}, pictureGraph(8))
  await collector.until('job.run', ofJob(id))
  const drawn = await runAtelier(['trace', id, '--base-url', app.url])
  assert.equal(drawn.code, 0, drawn.stderr)
  const lines = drawn.stdout.split('\n')
  assert.match(lines[0], new RegExp(`^job ${id} .* succeeded · [\\d.]+ m?s$`))
  assert.match(lines[1], /^trace [0-9a-f]{32}$/)
  const names = lines.slice(3).map((line) => line.trimStart().split(/ {2,}/, 1)[0])
  assert.deepEqual(names.slice(0, 3), ['job', 'waited', 'run 1'])
  assert.ok(names.includes('SaveImage #2') && names.includes('outputs and end'), drawn.stdout)
  const { request_id: callId } = (await readCalls())[0]
  const call = await runAtelier(['trace', callId, '--base-url', app.url, '--json'])
  assert.equal(call.code, 0, call.stderr)
  assert.equal(JSON.parse(call.stdout).pieces[0].name, 'openai/gpt-image-1')
  const unknown = await runAtelier(['trace', 'nobody', '--base-url', app.url])
  assert.deepEqual([unknown.code, unknown.stdout], [1, ''])
  assert.match(unknown.stderr, /^atelier: there is no job nobody, .*\n$/)
})

async function readCalls(): Promise<{ request_id: string }[]> {
  const answer = await fetch(`${app.url}/console/v1/calls?limit=100`)
  return ((await answer.json()) as { calls: { request_id: string }[] }).calls
}
