/** What went wrong, as clients of v1 are told: failures without a node, jobs that expire, and refused prompts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WebSocket } from 'ws'
import { startTestApp } from '../../../../test/support/app/start-app.ts'
import { startShared } from '../../../../test/support/app/start-shared.ts'
import { node } from '../../../../test/support/clients/checked-client.ts'
import { type Json, LegacyClient } from '../../../../test/support/clients/legacy-client.ts'
import { saveGraph } from '../../../../test/support/clients/legacy-graphs.ts'
import { isText, openSocket, type TextFrame } from '../../../../test/support/clients/test-socket.ts'
import { createFakeEngine } from '../../../../test/support/engines/fake-engine.ts'
import { createFixedClock } from '../../../../test/support/fixed-clock.ts'
import { ServiceError } from '../../../domain/errors.ts'

const PROMPT = { '1': node('FakeSave') }
const FINAL_WORDS = ['success', 'error', 'non_retryable_error', 'lost', 'cancelled']

/** Every answer that shows a failure. */
async function failuresOf(client: LegacyClient, id: string): Promise<Json[]> {
  const history = await client.untilHistory(id)
  const { jobs } = (await client.get('/api/jobs?limit=200')).json
  const detail = (await client.get(`/api/jobs/${id}`)).json
  const v2 = (await client.get(`/api/history_v2/${id}`)).json
  return [
    history.status.messages.at(-1)[1],
    jobs.find((job: Json) => job.id === id).execution_error,
    detail.execution_error,
    detail.execution_status.messages.at(-1)[1],
    v2[id].status.messages.at(-1)[1],
  ]
}

test('a failure without a node names none in a text, in the words that clients know', async () => {
  const engine = createFakeEngine()
  await using app = await startTestApp({ overrides: { engine } })
  const client = new LegacyClient(app.url)
  const socket = await openSocket(new WebSocket(`${app.url.replace('http', 'ws')}/ws?clientId=me`))
  for (const [code, exceptionType, word] of [
    ['missing_weights', 'ModelDownloadError', 'non_retryable_error'],
    ['missing_node_class', 'ValidationError', 'non_retryable_error'],
    ['invalid_workflow', 'ValidationError', 'non_retryable_error'],
    ['stalled', 'ServiceError', 'error'],
    ['engine_lost', 'ServiceError', 'lost'],
  ] as const) {
    engine.faults.refusal = {
      ...{ code, message: 'no', nodeId: null, classType: null, traceback: null },
      exceptionType: code,
    }
    const id = await client.accepted(PROMPT, { client_id: 'me' })
    const told = await socket.until((frame) => isText(frame, 'execution_error') && frame.data['prompt_id'] === id)
    for (const failure of [(told as TextFrame).data, ...(await failuresOf(client, id))]) {
      const { node_id, node_type, exception_type } = failure
      assert.deepEqual(
        { node_id, node_type, exception_type },
        { node_id: '', node_type: '', exception_type: exceptionType },
      )
    }
    assert.equal((await client.get(`/api/job/${id}/status`)).json.status, word)
  }
})

test('a run that is interrupted before its first node names none in a text either', async () => {
  const engine = createFakeEngine({ interruptItself: true })
  await using app = await startTestApp({ overrides: { engine } })
  const client = new LegacyClient(app.url)
  const socket = await openSocket(new WebSocket(`${app.url.replace('http', 'ws')}/ws?clientId=me`))
  const id = await client.accepted(PROMPT, { client_id: 'me' })
  const { node_id, node_type } = ((await socket.until((frame) => isText(frame, 'execution_error'))) as TextFrame).data
  assert.deepEqual([node_id, node_type], ['', ''])
  for (const failure of await failuresOf(client, id)) assert.deepEqual([failure.node_id, failure.node_type], ['', ''])
})

test('a job that expires before it has ended answers every poller with a final word', async () => {
  const clock = createFixedClock()
  await using app = await startTestApp({ settings: { workers: '0' }, overrides: { engine: createFakeEngine(), clock } })
  const client = new LegacyClient(app.url)
  const id = await client.accepted(PROMPT)
  clock.advance(400 * 24 * 60 * 60 * 1000)
  assert.equal((await app.app.store.jobs.expire(clock.now(), 10)).length, 1)
  const status = await client.get(`/api/job/${id}/status`)
  assert.deepEqual([status.status, FINAL_WORDS.includes(status.json.status)], [200, true])
  assert.match(status.json.error_message, /retention/)
  const detail = await client.get(`/api/jobs/${id}`)
  assert.deepEqual([detail.status, detail.json.status], [200, 'failed'])
  for (const path of ['/history', '/api/history_v2']) {
    const entry = (await client.get(`${path}/${id}`)).json[id]
    assert.deepEqual([entry.status.status_str, entry.status.completed], ['error', false])
    const [type, data] = entry.status.messages.at(-1)
    assert.deepEqual([type, data.node_id, data.node_type], ['execution_error', '', ''])
  }
  const { queue_running, queue_pending } = (await client.get('/queue')).json
  assert.deepEqual([queue_running, queue_pending], [[], []])
})

test('every refusal of a prompt has the one shape, whoever refuses it', async () => {
  function mustBePromptError(
    { status, json, text }: { status: number; json: Json; text: string },
    wanted: string,
  ): void {
    assert.ok(status >= 400, text)
    assert.deepEqual(Object.keys(json), ['error', 'node_errors'], text)
    assert.deepEqual(Object.keys(json.error), ['type', 'message', 'details', 'extra_info'], text)
    assert.equal(json.error.type, wanted)
  }
  const submitPrompt = async ({ workflow }: { workflow?: unknown }) => {
    const { refusal } = workflow as { refusal?: 'queue_full' }
    throw refusal === undefined ? new Error('a defect') : new ServiceError(refusal, 'no')
  }
  await using app = await startTestApp({
    settings: { token: 'a-token-of-some-length', maxBody: '1KiB' },
    overrides: {
      engine: createFakeEngine(),
      surfaceParts: (parts) => ({ ...parts, jobs: { ...parts.jobs, submitPrompt: submitPrompt as never } }),
    },
  })
  const client = new LegacyClient(app.url, { 'x-api-key': 'a-token-of-some-length' })
  for (const path of ['/prompt', '/api/prompt']) {
    const nobody = await new LegacyClient(app.url).post(path, { prompt: {} })
    assert.equal(nobody.headers.get('www-authenticate'), 'Bearer')
    mustBePromptError(nobody, 'unauthorized')
    mustBePromptError(await client.post(path, '{"prompt":'), 'invalid_prompt')
    mustBePromptError(await client.post(path, '[]'), 'invalid_prompt')
    mustBePromptError(await client.post(path, {}), 'no_prompt')
    mustBePromptError(await client.post(path, { prompt: {}, prompt_id: 'X' }), 'invalid_prompt_id')
    mustBePromptError(await client.post(path, { prompt: {}, number: 'x' }), 'invalid_prompt')
    mustBePromptError(await client.post(path, { prompt: 'x'.repeat(2000) }), 'payload_too_large')
    const full = await client.post(path, { prompt: { refusal: 'queue_full' } })
    assert.ok(full.headers.has('retry-after'))
    mustBePromptError(full, 'QUEUE_LIMIT')
    mustBePromptError(await client.post(path, { prompt: { refusal: 'insufficient_credits' } }), 'INSUFFICIENT_CREDITS')
    mustBePromptError(await client.post(path, { prompt: {} }), 'internal_error')
    const headers = { origin: 'https://elsewhere.example' }
    mustBePromptError(await client.call(path, { method: 'POST', body: '{}', headers }), 'forbidden')
  }
})

test('a key without the scope is refused in the shape of a prompt too, other routes in theirs', async () => {
  await using shared = await startShared()
  await shared.account('ada')
  const made = await shared.admin('POST', '/accounts/ada/keys', { scopes: ['jobs:read'] })
  const client = new LegacyClient(shared.url, { 'x-api-key': made.json.text })
  const refused = await client.prompt(saveGraph(1))
  assert.deepEqual([refused.status, Object.keys(refused.json)], [403, ['error', 'node_errors']])
  const other = await client.post('/queue', { clear: true })
  assert.deepEqual([other.status, Object.keys(other.json)], [403, ['code', 'message', 'error']])
})
