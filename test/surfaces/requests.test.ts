/** The operations on jobs over HTTP: bodies, queries, answers, refusals. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NumberText } from '../../lib/json/lossless-json.ts'
import { type Log, silentLog } from '../../lib/log.ts'
import { type Refusal, ServiceError } from '../../src/domain/errors.ts'
import { JOB_ID, makeJob, makeOutput, makeProgress } from '../support/app/memory-jobs.ts'
import { startSurface, type TestSurface } from '../support/app/start-surface.ts'
import { call } from '../support/clients/call.ts'
import { checkAgainstSpec } from '../support/clients/check-against-spec.ts'

const JOBS = '/api/v2/jobs'
const JOB = `${JOBS}/${JOB_ID}`
const UNKNOWN = '0199b3f4-1d2e-7a3b-8c4d-000000000000'

function submit(service: TestSurface, body: unknown, headers: Record<string, string> = {}) {
  return call(service.url, JOBS, {
    method: 'POST',
    headers,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

async function refusalOf(service: TestSurface, body: unknown): Promise<[number, string]> {
  const answer = await submit(service, body)
  checkAgainstSpec('POST', JOBS, answer.status, answer.json)
  return [answer.status, answer.json.error.code]
}

test('a submit answers 201 with the whole job and echoes metadata and priority', async () => {
  await using service = await startSurface()
  const answer = await submit(service, { workflow: { 1: {} }, metadata: { scene: '12' }, priority: -5, unknown: 1 })
  assert.equal(answer.status, 201)
  checkAgainstSpec('POST', JOBS, 201, answer.json)
  assert.deepEqual([answer.json.metadata, answer.json.priority], [{ scene: '12' }, -5])
  const [submitted] = service.jobs.submitted
  assert.ok(submitted !== undefined)
  // How it is known that the caller has left, for files that are fetched before.
  const { giving: _, ...request } = submitted
  assert.deepEqual(request, {
    accountId: 'local',
    keyId: null,
    pool: null,
    workflow: { 1: {} },
    extraData: null,
    metadata: { scene: '12' },
    priority: -5,
    webhook: null,
    reuse: null,
    notBefore: null,
    expiresQueuedAfterSeconds: null,
    idempotencyKey: null,
  })
})

test('a body is read whatever its Content-Type says', async () => {
  await using service = await startSurface()
  for (const type of [
    undefined,
    'application/json',
    'text/plain',
    'multipart/form-data',
    'not a type',
    ';;',
    'a/b; c=',
  ]) {
    const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type }
    assert.equal((await submit(service, { workflow: {} }, headers)).status, 201, type)
  }
})

test('integers of 64 bits and other rare numbers reach the domain unchanged', async () => {
  await using service = await startSurface()
  await submit(service, '{"workflow":{"1":{"inputs":{"seed":18446744073709551615,"cfg":1.0}}}}')
  assert.deepEqual(service.jobs.submitted[0].workflow, {
    1: { inputs: { seed: 18446744073709551615n, cfg: new NumberText('1.0') } },
  })
})

test('malformed bodies are 400 invalid_request', async () => {
  await using service = await startSurface()
  const deep = `{"workflow":${'['.repeat(300)}${']'.repeat(300)}}`
  for (const body of ['', '{', 'nul', '[]', '"x"', '1', 'null', '{"workflow":{}}}', deep, '['.repeat(500_000)]) {
    assert.deepEqual(await refusalOf(service, body), [400, 'invalid_request'], body.slice(0, 40))
  }
  const notUtf8 = await call(service.url, JOBS, { method: 'POST', body: Uint8Array.of(0x22, 0xff, 0x22) })
  assert.deepEqual([notUtf8.status, notUtf8.json.error.code], [400, 'invalid_request'])
  assert.equal(service.jobs.submitted.length, 0)
})

test('brackets inside strings do not count as nesting', async () => {
  await using service = await startSurface()
  assert.equal((await submit(service, { workflow: { text: `${'[{'.repeat(500)}"\\` } })).status, 201)
})

test('a body over the limit is 413, declared or not', async () => {
  await using service = await startSurface({ api: { maxBodyBytes: 1000 } })
  const body = JSON.stringify({ workflow: { text: 'x'.repeat(2000) } })
  assert.deepEqual(await refusalOf(service, body), [413, 'payload_too_large'])
  const chunked = await call(service.url, JOBS, { method: 'POST', headers: { 'transfer-encoding': 'chunked' }, body })
  assert.deepEqual([chunked.status, chunked.json.error.code], [413, 'payload_too_large'])
})

test('extra_data is a closed object in both spellings, forwarded as it came', async () => {
  await using service = await startSurface()
  const accepted: [unknown, unknown][] = [
    [
      { api_key_comfy_org: 'a', auth_token_service_org: 'b' },
      { api_key_comfy_org: 'a', auth_token_service_org: 'b' },
    ],
    [
      { api_key_service_org: 'a', auth_token_comfy_org: 'b' },
      { api_key_service_org: 'a', auth_token_comfy_org: 'b' },
    ],
    [{ extra_pnginfo: { workflow: { a: 1 } } }, { extra_pnginfo: { workflow: { a: 1 } } }],
    [{ extra_pnginfo: {} }, { extra_pnginfo: {} }],
    [{}, null],
  ]
  for (const [sent, forwarded] of accepted) {
    assert.equal((await submit(service, { workflow: {}, extra_data: sent })).status, 201)
    assert.deepEqual(service.jobs.submitted.at(-1)!.extraData, forwarded)
  }
  const refused = [
    null,
    [],
    'x',
    1,
    { other: 'x' },
    { api_key_comfy_org: null },
    { api_key_comfy_org: 1 },
    { auth_token_service_org: {} },
    { extra_pnginfo: null },
    { extra_pnginfo: [] },
    { extra_pnginfo: { workflow: null } },
    { extra_pnginfo: { workflow: [] } },
    { extra_pnginfo: { prompt: {} } },
    { api_key_comfy_org: 'secret', other: 1 },
  ]
  for (const extra_data of refused) {
    const body = { workflow: {}, extra_data }
    assert.deepEqual(await refusalOf(service, body), [400, 'invalid_request'], JSON.stringify(extra_data))
  }
  for (const odd of ['{"extra_pnginfo":1.0}', '{"extra_pnginfo":{"workflow":1.0}}', '1.0']) {
    assert.deepEqual(await refusalOf(service, `{"workflow":{},"extra_data":${odd}}`), [400, 'invalid_request'], odd)
  }
  const leaky = await submit(service, { workflow: {}, extra_data: { api_key_comfy_org: { v: 'secret' } } })
  assert.doesNotMatch(leaky.text, /secret/)
})

test('priority, webhook_url, inputs and metadata are judged by their own rules', async () => {
  await using service = await startSurface()
  for (const priority of [true, '1', 1.5, null, 1_000_001, -1_000_001, [], 2 ** 70]) {
    assert.deepEqual(await refusalOf(service, { workflow: {}, priority }), [422, 'invalid_request'], String(priority))
  }
  for (const field of ['webhook_url', 'inputs']) {
    assert.deepEqual(await refusalOf(service, { workflow: {}, [field]: 'x' }), [422, 'invalid_request'])
    assert.equal((await submit(service, { workflow: {}, [field]: null })).status, 201)
  }
  for (const metadata of [
    { 'bad key': 'x' },
    { a: 1 },
    { a: '\u0000' },
    { a: '\u202e' },
    { a: 'x'.repeat(513) },
    [],
    null,
  ]) {
    assert.deepEqual(await refusalOf(service, { workflow: {}, metadata }), [422, 'metadata_invalid'])
  }
  const limits = { workflow: {}, priority: 1_000_000, metadata: { 'A.b-c_9': 'x'.repeat(512) } }
  assert.equal((await submit(service, limits)).status, 201)
})

test('the idempotency key is handed on, and a bad one is 400', async () => {
  await using service = await startSurface()
  await submit(service, { workflow: {} }, { 'idempotency-key': 'k'.repeat(255) })
  assert.equal(service.jobs.submitted[0].idempotencyKey, 'k'.repeat(255))
  for (const key of ['', 'k'.repeat(256)]) {
    assert.equal((await submit(service, { workflow: {} }, { 'idempotency-key': key })).status, 400)
  }
})

test('a job is the same through the cache and past it, with every field of the contract', async () => {
  await using service = await startSurface()
  service.jobs.put(
    makeJob({
      progress: makeProgress(0.5),
      outputs: [makeOutput()],
      completedAt: new Date('2026-01-01T00:00:04.000Z'),
    }),
  )
  const cached = await call(service.url, JOB)
  assert.equal(service.jobs.calls.find, 0)
  service.jobs.switches.isCached = false
  const read = await call(service.url, JOB)
  assert.equal(service.jobs.calls.find, 1)
  assert.equal(cached.text, read.text)
  for (const name of Object.keys(cached.headers).filter((name) => !name.endsWith('request-id') && name !== 'date')) {
    assert.equal(read.headers[name], cached.headers[name], name)
  }
  checkAgainstSpec('GET', '/api/v2/jobs/{id}', 200, cached.json)
  assert.deepEqual(cached.json.metrics, { queue_ms: 1500, execution_ms: 2500 })
  assert.equal(cached.json.created_at, '2026-01-01T00:00:00.000Z')
})

test('unknown, foreign and malformed ids are 404 on every operation, before anything is asked', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob({ accountId: 'somebody-else' }))
  const ids = [
    JOB_ID,
    UNKNOWN,
    'nope',
    '..%2F..%2Ffree',
    JOB_ID.toUpperCase(),
    `${JOB_ID}%00`,
    'a'.repeat(5000),
    '%2e%2e',
  ]
  for (const id of ids) {
    for (const [method, tail] of [
      ['GET', ''],
      ['GET', '/workflow'],
      ['GET', '/logs'],
      ['GET', '/events'],
      ['POST', '/cancel'],
    ]) {
      const answer = await call(service.url, `${JOBS}/${id}${tail}`, { method })
      assert.deepEqual([answer.status, answer.json.error.code], [404, 'not_found'], `${method} ${id}${tail}`)
      checkAgainstSpec(method, `/api/v2/jobs/{id}${tail}`, 404, answer.json)
    }
  }
})

test('the workflow is sent as it was stored', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob())
  service.jobs.workflows.set(JOB_ID, '{"1":{"seed":18446744073709551615,"cfg":1.0}}')
  const answer = await call(service.url, `${JOB}/workflow`)
  assert.equal(answer.text, '{"workflow":{"1":{"seed":18446744073709551615,"cfg":1.0}},"format":"api"}')
  checkAgainstSpec('GET', '/api/v2/jobs/{id}/workflow', 200, answer.json)
})

test('logs are JSON, or 204 without a body', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob())
  const none = await call(service.url, `${JOB}/logs`)
  assert.deepEqual([none.status, none.text], [204, ''])
  checkAgainstSpec('GET', '/api/v2/jobs/{id}/logs', 204)
  service.jobs.logs.set(JOB_ID, { text: 'hi\n', truncated: true, capturedAt: new Date(0), complete: true })
  const some = await call(service.url, `${JOB}/logs`)
  checkAgainstSpec('GET', '/api/v2/jobs/{id}/logs', 200, some.json)
  assert.deepEqual(some.json, {
    text: 'hi\n',
    truncated: true,
    captured_at: '1970-01-01T00:00:00.000Z',
    complete: true,
  })
})

test('cancel needs no body and ignores any', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob())
  for (const body of [undefined, '', '{', '{"a":1}']) {
    const answer = await call(service.url, `${JOB}/cancel`, {
      method: 'POST',
      body,
      headers: body ? { 'content-type': 'x' } : {},
    })
    assert.deepEqual([answer.status, answer.json.status], [200, 'canceling'])
    checkAgainstSpec('POST', '/api/v2/jobs/{id}/cancel', 200, answer.json)
  }
})

test('every refusal has its status and code, details are never absent, and every 429 and 503 says when to come back', async () => {
  await using service = await startSurface()
  const expected: Record<Refusal, `${number} ${string}`> = {
    invalid_request: '400 invalid_request',
    invalid_field: '422 invalid_request',
    invalid_metadata_filter: '400 invalid_metadata_filter',
    invalid_cursor: '400 invalid_cursor',
    metadata_invalid: '422 metadata_invalid',
    unauthorized: '401 unauthorized',
    forbidden: '403 forbidden',
    forbidden_origin: '403 forbidden_origin',
    forbidden_host: '403 forbidden',
    not_found: '404 not_found',
    wrong_method: '405 invalid_request',
    blob_not_found: '404 blob_not_found',
    output_unavailable: '404 output_unavailable',
    hash_mismatch: '409 hash_mismatch',
    asset_in_use: '409 asset_in_use',
    weights_conflict: '409 invalid_request',
    offset_mismatch: '409 offset_mismatch',
    upload_locked: '423 upload_locked',
    checksum_mismatch: '460 checksum_mismatch',
    unsupported_version: '412 unsupported_version',
    unsupported_media_type: '415 unsupported_media_type',
    payload_too_large: '413 payload_too_large',
    range_not_satisfiable: '416 invalid_request',
    invalid_workflow: '422 invalid_workflow',
    workflow_format_ui: '422 workflow_format_ui',
    missing_asset: '422 missing_asset',
    batch_refused: '422 batch_refused',
    invalid_input: '422 invalid_input',
    breaking_change: '409 breaking_change',
    not_waiting: '409 not_waiting',
    revision_mismatch: '412 revision_mismatch',
    endpoint_stopped: '422 endpoint_stopped',
    idempotency_key_reuse: '422 idempotency_key_reuse',
    queue_full: '429 queue_full',
    run_limit: '429 run_limit',
    spend_limit: '402 spend_limit',
    store_unavailable: '503 store_unavailable',
    rate_limited: '429 rate_limited',
    too_many_streams: '429 too_many_streams',
    insufficient_credits: '402 insufficient_credits',
    subscription_inactive: '403 forbidden',
    deployment_not_ready: '429 deployment_not_ready',
    deployment_stopped: '422 deployment_stopped',
    refused_by_policy: '403 refused_by_policy',
    check_unavailable: '503 check_unavailable',
    link_invalid: '403 forbidden',
    storage_full: '500 upstream_error',
    overloaded: '429 queue_full',
    shutting_down: '429 queue_full',
  }
  for (const [refusal, statusAndCode] of Object.entries(expected)) {
    service.jobs.switches.fail = new ServiceError(refusal as Refusal, 'because', { retryAfterSeconds: 0.2 })
    const answer = await submit(service, { workflow: {} })
    assert.equal(`${answer.status} ${answer.json.error.code}`, statusAndCode, refusal)
    // How it stands with the operator's disk is not said.
    assert.equal(answer.json.error.message === 'because', refusal !== 'storage_full')
    assert.equal(answer.json.error.details, null)
    assert.equal(answer.headers['retry-after'], [423, 429, 503].includes(answer.status) ? '1' : undefined)
    assert.equal(answer.headers['content-type'], 'application/json')
  }
  service.jobs.switches.fail = new ServiceError('invalid_workflow', 'no', { details: { node_errors: { 1: [] } } })
  assert.deepEqual((await submit(service, { workflow: {} })).json.error.details, { node_errors: { 1: [] } })
  service.jobs.switches.fail = new ServiceError('queue_full', 'full', { retryAfterSeconds: 4.2 })
  assert.equal((await submit(service, { workflow: {} })).headers['retry-after'], '5')
})

test('a defect is a generic 500, logged once with the request id that the caller sees', async () => {
  const logged: Record<string, unknown>[] = []
  const log: Log = { ...silentLog, error: (fields) => void logged.push(fields as Record<string, unknown>) }
  await using service = await startSurface({ log })
  const defect = new Error('the password is hunter2')
  service.jobs.switches.fail = defect
  for (const path of [JOB, `${JOB}/events`]) {
    const answer = await call(service.url, path)
    assert.equal(answer.status, 500)
    checkAgainstSpec('GET', '/api/v2/jobs/{id}', 500, answer.json)
    assert.equal(answer.json.error.code, 'upstream_error')
    assert.doesNotMatch(answer.text, /hunter2/)
    assert.deepEqual(logged.splice(0), [{ err: defect, requestId: answer.headers['x-service-request-id'] }])
  }
})
