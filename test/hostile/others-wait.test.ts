/**
 * Whatever one client sends, others are served meanwhile. Long work runs in slices; here each piece of work is stopped after its
 * first steps until another client (the canary) has been answered: its `/healthz` and its job list. Work that is not cut into
 * steps leaves no room for canaries and fails the test. That the event loop turns between slices is tested in
 * lib/waiting/turns.test.ts; how long slices are is measured by `npm run bench stalls`.
 */
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { finishNow, type Turns, type Work } from '../../lib/waiting/turns.ts'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { type Answer, call } from '../support/clients/call.ts'

const MAX_CANARIES = 10

let app: TestApp
let works = 0
let canaries = 0
let isCanaryOut = false

async function sendCanary(): Promise<void> {
  isCanaryOut = true
  const answers = await Promise.all([call(app.url, '/healthz'), call(app.url, '/api/v2/jobs')])
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200],
  )
  isCanaryOut = false
  canaries++
}

async function runWatched<Result>(work: Work<Result>): Promise<Result> {
  works++
  for (let step = work.next(); ; step = work.next()) {
    if (step.done === true) return step.value
    if (isCanaryOut || canaries >= MAX_CANARIES) return finishNow(work)
    await sendCanary()
  }
}

before(async () => {
  const turns: Turns = { run: runWatched }
  app = await startTestApp({ overrides: { turns } })
})
beforeEach(() => {
  works = 0
  canaries = 0
})
after(() => app[Symbol.asyncDispose]())

function post(path: string, body: string): () => Promise<Answer> {
  return () => call(app.url, path, { method: 'POST', body })
}

function object(members: Iterable<readonly [string, unknown]>): string {
  return JSON.stringify(Object.fromEntries(members))
}

const previewOf = (id: string) => ({ class_type: 'PreviewAny', inputs: { source: [id, 0] } })

function chain(length: number, value: number): string {
  const nodes: [string, object][] = [['0', { class_type: 'PrimitiveInt', inputs: { value } }]]
  for (let at = 1; at < length; at++) {
    nodes.push([String(at), { class_type: 'PrimitiveInt', inputs: { value: [String(at - 1), 0] } }])
  }
  return object([...nodes, ['end', previewOf(String(length - 1))]])
}

/** Thousands of values, and no object with too many of them. */
function deepKeys(groups: number): string {
  const group = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`k${index}`, index]))
  return object(Array.from({ length: groups }, (_, index) => [`g${index}`, group] as const))
}

const cycle = object(
  Array.from({ length: 1200 }, (_, index) => [
    String(index),
    { class_type: 'SaveImage', inputs: { filename_prefix: 'a', images: [String((index + 1) % 1200), 0] } },
  ]),
)
const trivial = object([
  ['1', { class_type: 'PrimitiveInt', inputs: { value: 1 } }],
  ['2', previewOf('1')],
])
const DOORS: Readonly<Record<string, readonly [act: () => Promise<Answer>, status: number]>> = {
  'a job of 4,000 nodes': [post('/api/v2/jobs', `{"workflow":${chain(4000, 1)}}`), 201],
  'a job of 1,200 faulty nodes': [post('/api/v2/jobs', `{"workflow":${cycle}}`), 422],
  'a prompt of 1,200 faulty nodes': [post('/api/prompt', `{"prompt":${cycle}}`), 400],
  'extra_data of 100,000 values': [
    post('/api/v2/jobs', `{"workflow":${trivial},"extra_data":{"extra_pnginfo":{"workflow":${deepKeys(100)}}}}`),
    201,
  ],
  'a prompt with extra_data of 100,000 values': [
    post('/api/prompt', `{"prompt":${trivial},"extra_data":{"other":${deepKeys(50)},"more":${deepKeys(50)}}}`),
    200,
  ],
  'a model input of 49,000 values': [post('/v2/models/sandbox/echo', `{"value":1,"rest":${deepKeys(48)}}`), 200],
  'a model input of one long text': [
    post('/v2/models/sandbox/echo', JSON.stringify({ value: 1, rest: 'é'.repeat(3_000_000) })),
    200,
  ],
  'an estimate of 49,000 values': [post('/v2/models/sandbox/echo/estimate', `{"rest":${deepKeys(48)}}`), 200],
  'a queue removal of 300,000 ids': [
    post('/api/queue', JSON.stringify({ delete: Array(300_000).fill('0199b3f4') })),
    400,
  ],
}

for (const [name, [act, status]] of Object.entries(DOORS)) {
  test(`others are served while ${name} is taken in`, async () => {
    const answer = await act()
    assert.equal(answer.status, status, answer.text.slice(0, 300))
    assert.equal(canaries, MAX_CANARIES)
  })
}

test('every event of a run is a separate piece of work, so that thousands in a row hold up nobody', async () => {
  const nodes = 300
  const { json: job } = await post('/api/v2/jobs', `{"workflow":${chain(nodes, 2)}}`)()
  const { text } = await call(app.url, `/api/v2/jobs/${job.id}/events`)
  assert.match(text, /"status":"succeeded"/)
  assert.ok(works > 2 * nodes, `${works} works`)
})

test('the members of one object are bounded, on every surface', async () => {
  const many = object(Array.from({ length: 30_000 }, (_, index) => [`k${index}`, 1]))
  const bodies = {
    '/api/v2/jobs': `{"workflow":{},"extra_data":${many}}`,
    '/api/prompt': `{"prompt":{},"extra_data":${many}}`,
    '/v2/models/sandbox/echo': many,
    '/api/queue': many,
  }
  for (const [path, body] of Object.entries(bodies)) {
    const answer = await post(path, body)()
    assert.equal(answer.status, 413, path)
    assert.match(answer.text, /more than 25000 members/, path)
  }
})
