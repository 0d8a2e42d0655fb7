import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LimitOverrides } from '../../../src/domain/accounts/limits/tiers.ts'
import { MODELS, startRouter } from '../../support/app/start-router.ts'
import { refusedWith } from '../../support/clients/router-client.ts'
import { accepted, done, fakeModel, gate, refusedBy } from '../../support/providers/fake-provider.ts'
import { waitUntil } from '../../support/wait-until.ts'

test("the provider's bytes and media type come back, and the caller's bytes reach it unchanged", async () => {
  await using app = await startRouter()
  const sound = Buffer.from([0, 255, 1, 254])
  app.provider.answer(done(sound, 'audio/mpeg'))
  const body = '{ "seed": 18446744073709551615,  "scale": 1.0, "prompt": "grün" }'
  const answer = await app.client.run('fake/direct', body)
  assert.equal(answer.status, 200)
  assert.equal(answer.headers['content-type'], 'audio/mpeg')
  assert.deepEqual(answer.bytes, sound)
  assert.equal(answer.headers['idempotent-replayed'], undefined)
  assert.equal(app.provider.submits[0]?.body.toString(), body)
})

test('the terminal document of a polled model is the answer, never its handle', async () => {
  await using app = await startRouter()
  app.provider.answer(accepted({ task: 7 }))
  app.provider.pollAnswer({ outcome: 'pending', pollAfterMs: 10 }, done({ status: 'Ready', sample: 'x' }))
  const answer = await app.client.run('fake/polled', {})
  assert.deepEqual(answer.json, { status: 'Ready', sample: 'x' })
  assert.deepEqual(app.provider.polls, [{ task: 7 }, { task: 7 }])
})

test('every failure of an input is listed, with its location, its type and its limit', async () => {
  await using app = await startRouter()
  const body = { n: 9, size: 'huge', tags: ['a', 'b', 3], model: 'another' }
  const { json } = refusedWith(await app.client.run('fake/strict', body), 422, 'invalid_input')
  const found = new Map(json.detail.map((entry: { loc: unknown[] }) => [entry.loc.join('.'), entry]))
  const expect = (location: string, fields: object) =>
    assert.partialDeepStrictEqual(found.get(location), fields, location)
  expect('body.prompt', { type: 'missing' })
  expect('body.n', { type: 'less_than_equal', ctx: { limit_value: 4 }, input: 9 })
  expect('body.size', { type: 'one_of', ctx: { expected: ['small', 'large'] }, input: 'huge' })
  expect('body.tags', { type: 'sequence_too_long', ctx: { limit_value: 2 } })
  expect('body.tags.2', { type: 'value_error', input: 3, loc: ['body', 'tags', 2] })
  expect('body.model', { type: 'one_of', ctx: { expected: ['strict'] }, input: 'another' })
  assert.equal(app.provider.submits.length, 0)
  for (const model of [undefined, null, 'strict']) {
    assert.equal((await app.client.run('fake/strict', { prompt: 'x', model })).status, 200)
  }
})

test('a body that is no JSON object is malformed, one beyond the limit too large', async () => {
  await using app = await startRouter({ patch: { router: { maxBodyBytes: 1024 } } })
  for (const body of ['', '{', '[]', '"x"', 'null', '\ufffe{}'.slice(0, 1)]) {
    refusedWith(await app.client.run('fake/direct', body), 400, 'invalid_input')
  }
  refusedWith(await app.client.run('fake/direct', { x: 'y'.repeat(2000) }), 413, 'invalid_input')
  assert.equal(app.provider.submits.length, 0)
})

test('what stands in the catalogue and cannot run here is not enabled; what is for others is forbidden', async () => {
  await using app = await startRouter({
    provider: { access: (account) => (account === 'local' ? 'service_key' : 'none') },
  })
  refusedWith(await app.client.run('fake/listed', {}), 403, 'not_enabled')
  refusedWith(await app.client.run('bfl/flux-2-pro', {}), 403, 'not_enabled')
  refusedWith(await app.client.run('fake/special', {}), 403, 'forbidden')
  refusedWith(await app.client.call('/v2/models/fake/special'), 403, 'forbidden')
})

test('a key is asked for where there are accounts, and X-API-Key wins', async () => {
  await using app = await startRouter({ account: { micros: 1_000_000 } })
  const anonymous = new (app.client.constructor as new (url: string) => typeof app.client)(app.client.url)
  const wrong: Record<string, string>[] = [{}, { authorization: 'Bearer nonsense' }, { 'x-api-key': 'nonsense' }]
  for (const headers of wrong) {
    const answer = refusedWith(await anonymous.run('fake/direct', {}, { headers }), 401, 'unauthorized')
    assert.equal(answer.headers['www-authenticate'], 'Bearer')
    refusedWith(await anonymous.call('/v2/models', { headers }), 401, 'unauthorized')
  }
  assert.equal((await app.client.run('fake/direct', {}, { headers: { authorization: 'Bearer nonsense' } })).status, 200)
})

const PROVIDER_ANSWERS = [
  ['a refusal for its content', refusedBy('policy', { upstreamStatus: 200 }), 400, 'content_policy_violation', '200'],
  ['an input it calls malformed', refusedBy('invalid', { upstreamStatus: 400 }), 400, 'invalid_input', '400'],
  ['a failure', refusedBy('failed', { upstreamStatus: 500 }), 502, 'provider_error', '500'],
  ['a failure without a status', refusedBy('failed'), 502, 'provider_error', undefined],
  ['its own time-out', refusedBy('timeout', { upstreamStatus: 504 }), 504, 'provider_timeout', '504'],
  ['no capacity for it', refusedBy('unavailable'), 503, 'service_unavailable', undefined],
] as const
for (const [what, outcome, status, type, upstream] of PROVIDER_ANSWERS) {
  test(`${what} is ${type}`, async () => {
    await using app = await startRouter()
    app.provider.answer(outcome)
    const direct = refusedWith(await app.client.run('fake/direct', {}), status, type)
    assert.equal(direct.headers['x-service-upstream-status'], upstream)
    app.provider.answer(accepted({}))
    app.provider.pollAnswer(outcome)
    refusedWith(await app.client.run('fake/polled', {}), status, type)
  })
}

test('a provider that is left alone for a while says when to come again, and then the same key runs', async () => {
  await using app = await startRouter()
  app.provider.answer(refusedBy('unavailable', { retryAfterSeconds: 7 } as never))
  const refused = refusedWith(await app.client.run('fake/direct', {}, { key: 'k' }), 503, 'service_unavailable')
  assert.equal(refused.headers['retry-after'], '7')
  app.provider.answer(done({ the: 'first' }))
  assert.deepEqual((await app.client.run('fake/direct', {}, { key: 'k' })).json, { the: 'first' })
})

test("a provider's own list of failures is passed on unchanged", async () => {
  await using app = await startRouter()
  const failures = [{ loc: ['body', 'image'], msg: 'too small', type: 'image_too_small', ctx: { min_width: 512 } }]
  app.provider.answer(refusedBy('invalid', { upstreamStatus: 422, failures } as never))
  const { json } = refusedWith(await app.client.run('fake/direct', {}), 422, 'invalid_input')
  assert.deepEqual(json.detail, failures)
})

test('an adapter that throws is a provider error, and its key is not used twice', async () => {
  await using app = await startRouter()
  app.provider.answer(() => Promise.reject(new Error('secret-key-in-message')))
  const answer = refusedWith(await app.client.run('fake/direct', {}, { key: 'k' }), 502, 'provider_error')
  assert.doesNotMatch(answer.text, /secret/)
  refusedWith(await app.client.run('fake/direct', {}, { key: 'k' }), 409, 'invalid_input')
  assert.equal(app.provider.submits.length, 1)
})

test('without credits it is 402 before anything is said about the body', async () => {
  await using app = await startRouter({ account: { micros: 10_000 } })
  for (const body of ['{', '[]', { n: 100 }, { prompt: 'x' }]) {
    refusedWith(await app.client.run('fake/paid', body), 402, 'insufficient_credits')
    refusedWith(await app.client.post('/v2/models/fake/paid/estimate', body), 402, 'insufficient_credits')
    refusedWith(await app.client.post('/v2/models/fake/paid/requests', body), 402, 'insufficient_credits')
  }
  assert.equal(app.provider.submits.length, 0)
})

test('a call costs what its rule says, once, and the headers say so', async () => {
  await using app = await startRouter({ account: { micros: 1_000_000 } })
  const { headers } = await app.client.run('fake/paid', { prompt: 'x', n: 3 }, { key: 'k' })
  assert.equal(headers['x-service-credits-used'], '25.32')
  assert.equal(headers['x-litellm-response-cost'], '0.12')
  const replay = await app.client.run('fake/paid', { prompt: 'x', n: 3 }, { key: 'k' })
  assert.equal(replay.headers['x-service-credits-used'], '25.32')
  const balance = await app.test.app.store.ledger.balance('payer')
  assert.deepEqual([balance?.available, balance?.held], [880_000, 0])
  assert.deepEqual((await app.test.app.store.ledger.check()).faults, [])
})

test('what a failed call held goes back', async () => {
  await using app = await startRouter({ account: { micros: 1_000_000 } })
  for (const outcome of [refusedBy('policy'), refusedBy('failed'), refusedBy('failed', { generation: 'possible' })]) {
    app.provider.answer(outcome)
    await app.client.run('fake/paid', { prompt: 'x' })
  }
  const balance = await app.test.app.store.ledger.balance('payer')
  assert.deepEqual([balance?.available, balance?.held], [1_000_000, 0])
})

test('a model that charges for refused content is charged', async () => {
  const price = { parts: [{ unit: 'request', usd: '0.10' }] }
  const models = [fakeModel('fake/strict-policy', { price, billing: { charges_on_policy_rejection: 'yes' } })]
  await using app = await startRouter({ models, account: { micros: 1_000_000 } })
  app.provider.answer(refusedBy('policy'))
  refusedWith(await app.client.run('fake/strict-policy', {}), 400, 'content_policy_violation')
  assert.equal((await app.test.app.store.ledger.balance('payer'))?.available, 900_000)
})

test('calls beyond the pool are refused, and the pool opens when one ends', async () => {
  await using app = await startRouter({ settings: { routerMaxCalls: '2' } })
  const held = gate()
  app.provider.answer(held.answer)
  const running = [app.client.run('fake/direct', {}), app.client.run('fake/direct', {})]
  await waitUntil(() => app.provider.submits.length >= 2)
  const refused = refusedWith(await app.client.run('fake/direct', {}, { key: 'k' }), 429, 'concurrency_limit_exceeded')
  assert.match(refused.json.detail, /calls/)
  assert.deepEqual(
    ['limit', 'current', 'remaining'].map((name) => refused.headers[`x-concurrency-${name}`]),
    ['2', '2', '0'],
  )
  held.open()
  for (const answer of await Promise.all(running)) assert.equal(answer.status, 200)
  assert.equal((await app.client.run('fake/direct', {}, { key: 'k' })).status, 200)
})

test('committed spend includes an admitted call and excludes a refused one', async () => {
  await using app = await startRouter({ account: { micros: 10_000_000, overrides: { committedSpendMicros: 100_000 } } })
  const held = gate()
  app.provider.answer(held.answer)
  const first = app.client.run('fake/paid', { prompt: 'x', n: 2 })
  await waitUntil(() => app.provider.submits.length >= 1)
  const refused = refusedWith(await app.client.run('fake/paid', { prompt: 'x' }), 429, 'concurrency_limit_exceeded')
  assert.match(refused.json.detail, /spend/)
  assert.deepEqual(spendOf(refused), ['10', '8', '2'])
  held.open()
  assert.deepEqual(spendOf(await first), ['10', '8', '2'])
  const send = () => app.client.run('fake/paid', { prompt: 'x' }, { key: 'k' })
  assert.deepEqual(spendOf(await send()), ['10', '4', '6'])
  // A replay commits to nothing, and says how things stand.
  assert.deepEqual(spendOf(await send()), ['10', '0', '10'])
})

const spendOf = ({ headers }: { headers: Record<string, unknown> }) =>
  ['limit', 'current', 'remaining'].map((name) => headers[`x-committed-spend-${name}`])

test('a call that alone exceeds the ceiling is told that it never fits, and is not asked to come again', async () => {
  const overrides = { committedSpendMicros: 100_000, routerConcurrency: 1 }
  await using app = await startRouter({ account: { micros: 10_000_000, overrides } })
  const tooDear = { prompt: 'x', n: 3 }
  const alone = await app.client.run('fake/paid', tooDear, { key: 'k' })
  const held = gate()
  app.provider.answer(held.answer)
  const running = app.client.run('fake/paid', { prompt: 'x' })
  await waitUntil(() => app.provider.submits.length >= 1)
  // The only call at a time is running too: against that alone another try would help.
  const beside = await app.client.run('fake/paid', tooDear, { key: 'k' })
  held.open()
  await running
  const queued = await app.client.post('/v2/models/fake/paid/requests', tooDear, { key: 'q' })
  for (const refused of [alone, beside, queued]) {
    refusedWith(refused, 429, 'concurrency_limit_exceeded')
    assert.match(refused.json.detail, /0\.12 USD.*0\.10 USD.*can never fit/)
    assert.doesNotMatch(refused.json.detail, /try again/)
    assert.equal(refused.headers['retry-after'], undefined)
  }
  assert.deepEqual([alone, beside].map(spendOf), [
    ['10', '0', '10'],
    ['10', '4', '6'],
  ])
  // Nothing that never fits stands in the way of what does.
  const fitting = await app.client.post('/v2/models/fake/paid/requests', { prompt: 'x' })
  const { status_url: statusUrl } = fitting.json
  const status = async () => (await app.client.call(new URL(statusUrl).pathname)).json.status
  await waitUntil(async () => (await status()) === 'COMPLETED')
  assert.equal(app.provider.submits.length, 2)
})

test('a spent rate tells what is committed, and which rate it is', async () => {
  const committed = { committedSpendMicros: 100_000 }
  const OF_ACCOUNT = { ...committed, requestsPerMinute: 1, requestBurst: 1 }
  const cases: { settings: Record<string, string>; overrides: LimitOverrides; words: RegExp }[] = [
    { settings: { routerRate: '1' }, overrides: committed, words: /1 requests per 60 seconds/ },
    { settings: {}, overrides: OF_ACCOUNT, words: /requests of this account are limited to 1 a minute, 1 at once/ },
  ]
  for (const { settings, overrides, words } of cases) {
    await using app = await startRouter({ settings, account: { micros: 10_000_000, overrides } })
    const held = gate()
    app.provider.answer(held.answer)
    const running = app.client.run('fake/paid', { prompt: 'x', n: 2 })
    await waitUntil(() => app.provider.submits.length >= 1)
    const refused = await app.client.run('fake/paid', { prompt: 'x' })
    held.open()
    assert.equal((await running).status, 200)
    assert.match(refusedWith(refused, 429, 'rate_limited').json.detail, words)
    assert.ok(Number(refused.headers['retry-after']) >= 1)
    assert.deepEqual(spendOf(refused), ['10', '8', '2'])
  }
})

test('the rate counts every route, names its window and spares own keys', async () => {
  let access: 'service_key' | 'own_key' = 'service_key'
  await using app = await startRouter({ settings: { routerRate: '2' }, provider: { access: () => access } })
  await app.client.call('/v2/models')
  await app.client.run('fake/direct', {})
  const refused = refusedWith(await app.client.run('fake/direct', {}), 429, 'rate_limited')
  assert.match(refused.json.detail, /60 seconds/)
  assert.ok(Number(refused.headers['retry-after']) >= 1)
  refusedWith(await app.client.call('/v2/models/fake/direct/openapi.json'), 429, 'rate_limited')
  access = 'own_key'
  const own = await app.client.run('fake/paid', { prompt: 'x' })
  assert.equal(own.status, 200)
  assert.equal(own.headers['x-service-credits-used'], undefined)
})

test('an estimate validates like a run and dispatches nothing', async () => {
  const tokens = { parts: [{ unit: 'token', usd: '2', per: 1_000_000, times: [{ usage: 'tokens', max: 1000 }] }] }
  const models = [
    ...MODELS,
    fakeModel('fake/tokens', { price: tokens }),
    fakeModel('fake/mystery', { price: { kind: 'unknown', reason: 'nobody knows', hold_usd: '1' } }),
  ]
  await using app = await startRouter({ models })
  const estimate = async (model: string, body: object) =>
    (await app.client.post(`/v2/models/${model}/estimate`, body)).json
  assert.partialDeepStrictEqual(await estimate('fake/paid', { prompt: 'x', n: 2 }), {
    source: 'exact',
    amount: '0.08',
    currency: 'USD',
  })
  assert.partialDeepStrictEqual(await estimate('fake/tokens', {}), {
    source: 'estimated',
    min_amount: '0.000002',
    max_amount: '0.002',
  })
  assert.partialDeepStrictEqual(await estimate('fake/mystery', {}), { source: 'unknown', reason: 'nobody knows' })
  const refused = await app.client.post('/v2/models/fake/paid/estimate', { n: 0 })
  refusedWith(refused, 422, 'invalid_input')
  assert.equal(refused.json.detail.length, 2)
  // No schema bounds this model, and nobody could say what the provider would make of it.
  for (const path of ['', '/estimate', '/requests']) {
    const open = await app.client.post(`/v2/models/fake/paid-polled${path}`, { n: 'auto' })
    assert.deepEqual(refusedWith(open, 422, 'invalid_input').json.detail[0].loc, ['body', 'n'])
  }
  assert.equal(app.provider.submits.length, 0)
})

test('undeclared fields are passed on, or refused with all the rest where the query says so', async () => {
  await using app = await startRouter()
  const input = { prompt: 'x', colour: 'red', model: 'strict' }
  assert.equal((await app.client.run('fake/strict', input)).status, 200)
  assert.equal((await app.client.run('fake/strict?reject_unknown_fields=false', input)).status, 200)
  for (const path of ['', '/estimate', '/requests']) {
    const answer = await app.client.post(`/v2/models/fake/strict${path}?reject_unknown_fields=true`, { ...input, n: 9 })
    const { json } = refusedWith(answer, 422, 'invalid_input')
    assert.deepEqual(
      json.detail.map(({ loc }: { loc: string[] }) => loc.at(-1)),
      ['n', 'colour'],
    )
  }
  // Nothing is declared, so nothing is undeclared.
  assert.equal((await app.client.run('fake/direct?reject_unknown_fields=true', { any: 1 })).status, 200)
})

test('another provider can be named only where it is the one that runs the model anyway', async () => {
  await using app = await startRouter()
  const run = (query: string) => app.client.run(`fake/direct?${query}`, {}, { key: query })
  for (const query of [
    'model_provider=default',
    'model_provider=comfyui&strict_mode=true',
    'fallback_provider=false',
  ]) {
    assert.equal((await run(query)).status, 200, query)
  }
  for (const name of ['fal', 'wavespeed', 'runware', 'higgsfield']) {
    const refused = refusedWith(await run(`model_provider=${name}`), 404, 'model_not_found')
    assert.doesNotMatch(refused.json.detail, /close to it/)
  }
  const wrong = ['model_provider=nobody', 'model_provider=', 'strict_mode=yes', 'reject_unknown_fields=1']
  for (const query of [...wrong, 'model_provider=comfy&model_provider=comfy']) {
    refusedWith(await run(query), 400, 'invalid_input')
  }
  assert.equal(app.provider.submits.length, 3)
})
