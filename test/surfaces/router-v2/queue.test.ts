import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type RouterApp, startRouter } from '../../support/app/start-router.ts'
import { refusedWith } from '../../support/clients/router-client.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'
import { accepted, done, gate, refusedBy } from '../../support/providers/fake-provider.ts'
import { waitUntil } from '../../support/wait-until.ts'

async function submit(app: RouterApp, model: string, body: unknown, key?: string) {
  const answer = await app.client.post(`/v2/models/${model}/requests`, body, key === undefined ? {} : { key })
  assert.equal(answer.status, 201, answer.text)
  return { ...answer.json, answer } as {
    request_id: string
    queue_position: number
    answer: typeof answer
    response_url: string
  }
}

const requestPath = (model: string, id: string) => `/v2/models/${model}/requests/${id}`

/** Asks until the request is in this state. */
async function untilStatus(app: RouterApp, path: string, wanted: string) {
  return waitUntil(async () => {
    const answer = await app.client.call(`${path}/status`)
    assert.equal(answer.status, 200, answer.text)
    return answer.json.status === wanted ? answer : null
  })
}

test('a queued call gives what the same call at once gives, and says where it stands meanwhile', async () => {
  await using app = await startRouter({ account: { micros: 1_000_000 } })
  const held = gate(done({ made: 'of paint' }))
  app.provider.answer(held.answer)
  const { request_id: id, answer, response_url } = await submit(app, 'fake/paid', { prompt: 'x' }, 'k')
  assert.notEqual(id, answer.headers['x-service-request-id'])
  assert.equal(response_url, `${app.client.url}${requestPath('fake/paid', id)}`)
  const path = requestPath('fake/paid', id)
  await untilStatus(app, path, 'IN_PROGRESS')
  const early = await app.client.call(path)
  assert.deepEqual([early.status, early.json.status], [202, 'IN_PROGRESS'])
  assert.ok(Number(early.headers['retry-after']) >= 1)
  held.open()
  const ended = await untilStatus(app, path, 'COMPLETED')
  assert.equal('error_type' in ended.json, false)
  const result = await app.client.call(path)
  const direct = await app.client.run('fake/paid', { prompt: 'x' })
  assert.deepEqual(result.bytes, direct.bytes)
  assert.equal(result.headers['x-service-credits-used'], direct.headers['x-service-credits-used'])
  assert.equal((await app.test.app.store.ledger.balance('payer'))?.available, 920_000)
})

test('the same key gives the same handle, another request with it is refused', async () => {
  await using app = await startRouter()
  const first = await submit(app, 'fake/direct', { a: 1 }, 'k')
  const again = await submit(app, 'fake/direct', { a: 1 }, 'k')
  assert.equal(again.request_id, first.request_id)
  assert.equal(again.answer.headers['idempotent-replayed'], 'true')
  refusedWith(await app.client.post('/v2/models/fake/direct/requests', { a: 2 }, { key: 'k' }), 409, 'invalid_input')
})

test('at the limit of the pool requests wait in order, until the backlog is full', async () => {
  await using app = await startRouter({ settings: { routerMaxCalls: '1' }, patch: { router: { maxWaiting: 2 } } })
  const held = gate()
  app.provider.answer(held.answer)
  const first = await submit(app, 'fake/direct', { n: 0 })
  await untilStatus(app, requestPath('fake/direct', first.request_id), 'IN_PROGRESS')
  const second = await submit(app, 'fake/direct', { n: 1 })
  const third = await submit(app, 'fake/direct', { n: 2 })
  assert.deepEqual([second.queue_position, third.queue_position], [0, 1])
  const waiting = await app.client.call(`${requestPath('fake/direct', third.request_id)}/status`)
  assert.deepEqual([waiting.json.status, waiting.json.queue_position], ['IN_QUEUE', 1])
  refusedWith(await app.client.post('/v2/models/fake/direct/requests', {}), 429, 'queue_backlog_full')
  held.open()
  for (const { request_id } of [first, second, third])
    await untilStatus(app, requestPath('fake/direct', request_id), 'COMPLETED')
  assert.deepEqual(
    app.provider.submits.map(({ input }) => input['n']),
    [0, 1, 2],
  )
})

test('a request that is called off while it waits is never run or charged', async () => {
  await using app = await startRouter({ account: { micros: 1_000_000, overrides: { routerConcurrency: 1 } } })
  const held = gate()
  app.provider.answer(held.answer)
  const first = await submit(app, 'fake/paid', { prompt: 'x' })
  await untilStatus(app, requestPath('fake/paid', first.request_id), 'IN_PROGRESS')
  const second = await submit(app, 'fake/paid', { prompt: 'y' })
  const path = requestPath('fake/paid', second.request_id)
  const cancel = await app.client.call(`${path}/cancel`, { method: 'PUT' })
  assert.deepEqual(
    [cancel.status, cancel.json],
    [202, { request_id: second.request_id, status: 'CANCELLATION_REQUESTED' }],
  )
  const status = await app.client.call(`${path}/status`)
  assert.deepEqual([status.json.status, status.json.error_type], ['COMPLETED', 'cancelled'])
  refusedWith(await app.client.call(path), 409, 'cancelled')
  const late = refusedWith(await app.client.call(`${path}/cancel`, { method: 'PUT' }), 409, 'already_completed')
  assert.equal(late.json.status, 'ALREADY_COMPLETED')
  held.open()
  await untilStatus(app, requestPath('fake/paid', first.request_id), 'COMPLETED')
  assert.equal(app.provider.submits.length, 1)
  assert.equal((await app.test.app.store.ledger.balance('payer'))?.available, 960_000)
})

test('a running request is asked to stop, and ends as what the provider makes of it', async () => {
  await using app = await startRouter()
  app.provider.answer(accepted({ task: 1 }))
  const { request_id } = await submit(app, 'fake/polled', {})
  const path = requestPath('fake/polled', request_id)
  await untilStatus(app, path, 'IN_PROGRESS')
  await waitUntil(() => app.provider.polls.length !== 0)
  await app.client.call(`${path}/cancel`, { method: 'PUT' })
  await waitUntil(() => app.provider.canceled.length !== 0)
  app.provider.pollAnswer(refusedBy('failed', { generation: 'ended' }))
  const ended = await untilStatus(app, path, 'COMPLETED')
  assert.equal(ended.json.error_type, 'cancelled')
})

test('a request that could not be sent, because its provider is left alone or the journal fails, is sent later', async () => {
  await using app = await startRouter({ account: { micros: 1_000_000 } })
  const notNow = refusedBy('unavailable', { retryAfterSeconds: 0.01 } as never)
  app.provider.answer(notNow, notNow, done({ made: 'at last' }))
  const { request_id: id } = await submit(app, 'fake/paid', { prompt: 'x' }, 'k')
  const path = requestPath('fake/paid', id)
  await untilStatus(app, path, 'COMPLETED')
  assert.deepEqual((await app.client.call(path)).json, { made: 'at last' })
  assert.equal(app.provider.submits.length, 3)
  assert.equal((await app.test.app.store.ledger.balance('payer'))?.available, 960_000)
})

test('a request that waits for its provider outlasts any number of restarts', async () => {
  const first = await startRouter({ account: { micros: 1_000_000 } })
  first.provider.answer(refusedBy('unavailable', { retryAfterSeconds: 0.01 } as never))
  const { request_id: id } = await submit(first, 'fake/paid', { prompt: 'x' })
  let app = first
  try {
    for (let restarts = 0; restarts < 4; restarts += 1) {
      const tries = app.provider.submits.length
      await waitUntil(() => app.provider.submits.length > tries + 1)
      app = await app.restart()
    }
    app.provider.answer(done({ made: 'at last' }))
    const path = requestPath('fake/paid', id)
    await untilStatus(app, path, 'COMPLETED')
    assert.deepEqual((await app.client.call(path)).json, { made: 'at last' })
  } finally {
    await app[Symbol.asyncDispose]()
  }
})

test('a request that waits for its provider can be called off', async () => {
  await using app = await startRouter({ account: { micros: 1_000_000 } })
  app.provider.answer(refusedBy('unavailable', { retryAfterSeconds: 0.01 } as never))
  const { request_id: id } = await submit(app, 'fake/paid', { prompt: 'x' })
  const path = requestPath('fake/paid', id)
  await waitUntil(() => app.provider.submits.length > 2)
  assert.equal((await app.client.call(`${path}/cancel`, { method: 'PUT' })).status, 202)
  await untilStatus(app, path, 'COMPLETED')
  refusedWith(await app.client.call(path), 409, 'cancelled')
  assert.equal((await app.test.app.store.ledger.balance('payer'))?.available, 1_000_000)
})

test('failures are told on both reads', async () => {
  await using app = await startRouter()
  app.provider.answer(refusedBy('policy', { upstreamStatus: 200 }))
  const { request_id } = await submit(app, 'fake/direct', {})
  const path = requestPath('fake/direct', request_id)
  assert.equal((await untilStatus(app, path, 'COMPLETED')).json.error_type, 'content_policy_violation')
  refusedWith(await app.client.call(path), 400, 'content_policy_violation')
  refusedWith(await app.client.post('/v2/models/fake/strict/requests', {}), 422, 'invalid_input')
})

test('another id, another model and another account see no request', async () => {
  await using app = await startRouter()
  const { request_id } = await submit(app, 'fake/direct', {})
  const wrong = [
    requestPath('fake/direct', '00000000-0000-4000-8000-000000000000'),
    requestPath('fake/polled', request_id),
  ]
  for (const path of wrong) {
    refusedWith(await app.client.call(path), 404, 'request_not_found')
    refusedWith(await app.client.call(`${path}/status`), 404, 'request_not_found')
    refusedWith(await app.client.call(`${path}/cancel`, { method: 'PUT' }), 404, 'request_not_found')
  }
})

test('a result is kept for a day and then gone, a wait beyond the bound ends unbilled', async () => {
  const clock = createFixedClock(new Date())
  await using app = await startRouter({ clock, settings: { routerMaxCalls: '1' } })
  const { request_id: early } = await submit(app, 'fake/direct', {})
  await untilStatus(app, requestPath('fake/direct', early), 'COMPLETED')
  const held = gate()
  app.provider.answer(held.answer)
  await submit(app, 'fake/direct', { holds: 'the place' })
  await waitUntil(() => app.provider.submits.length >= 2)
  const { request_id: waiting } = await submit(app, 'fake/direct', { waits: true })
  clock.advance(3_601_000)
  await submit(app, 'fake/direct', { rings: 'the bell' })
  const ended = await untilStatus(app, requestPath('fake/direct', waiting), 'COMPLETED')
  assert.equal(ended.json.error_type, 'queue_timeout')
  refusedWith(await app.client.call(requestPath('fake/direct', waiting)), 504, 'queue_timeout')
  clock.advance(86_400_000)
  await app.test.app.store.calls.sweep(clock.now())
  refusedWith(await app.client.call(requestPath('fake/direct', early)), 410, 'request_not_found')
  held.open()
})

test('what waits and what runs survives a restart, with large bodies', async () => {
  const first = await startRouter({ settings: { routerMaxCalls: '1', drainTimeout: '0s' } })
  first.provider.answer(accepted({ task: 'running' }))
  const running = await submit(first, 'fake/polled', { n: 1 })
  await untilStatus(first, requestPath('fake/polled', running.request_id), 'IN_PROGRESS')
  await waitUntil(() => first.provider.polls.length !== 0)
  const waiting = await submit(first, 'fake/direct', { text: 'x'.repeat(300_000) })
  await first.test.app.drain()
  first.provider.pollAnswer(done({ collected: true }))
  first.provider.answer(done({ ran: 'later' }))
  await using second = await first.restart()
  await untilStatus(second, requestPath('fake/polled', running.request_id), 'COMPLETED')
  assert.deepEqual((await second.client.call(requestPath('fake/polled', running.request_id))).json, { collected: true })
  await untilStatus(second, requestPath('fake/direct', waiting.request_id), 'COMPLETED')
  assert.deepEqual((await second.client.call(requestPath('fake/direct', waiting.request_id))).json, { ran: 'later' })
  assert.equal(String(second.provider.submits.at(-1)?.input['text']).length, 300_000)
  assert.equal(second.provider.submits.length, 2)
})

test('a request that waited with its account’s own key is not run for nothing with ours', async () => {
  let access: 'service_key' | 'own_key' = 'own_key'
  const account = { micros: 1_000_000, overrides: { routerConcurrency: 1 } }
  await using app = await startRouter({ provider: { access: () => access }, account })
  const held = gate()
  app.provider.answer(held.answer, done({ ok: true }))
  await submit(app, 'fake/direct', {})
  const { request_id: id } = await submit(app, 'fake/paid', { prompt: 'x' })
  await waitUntil(() => app.provider.submits.length !== 0)
  access = 'service_key'
  held.open()
  await untilStatus(app, requestPath('fake/paid', id), 'COMPLETED')
  const refused = refusedWith(await app.client.call(requestPath('fake/paid', id)), 403, 'not_enabled')
  assert.match(refused.json.detail, /own key.*nothing was charged/)
  assert.equal(app.provider.submits.length, 1)
})

test('a queued result for which the account has no room is refused in words of the contract', async () => {
  const account = { micros: 1_000_000, overrides: { storageBytes: 100 } }
  await using app = await startRouter({ account })
  app.provider.answer(done({ pad: 'x'.repeat(100_000) }))
  const { request_id: id } = await submit(app, 'fake/paid', { prompt: 'x' })
  await untilStatus(app, requestPath('fake/paid', id), 'COMPLETED')
  const refused = refusedWith(await app.client.call(requestPath('fake/paid', id)), 413, 'invalid_input')
  assert.match(refused.json.detail, /may still keep.*its price is due/)
  assert.equal((await app.test.app.store.ledger.balance('payer'))?.available, 960_000)
})
