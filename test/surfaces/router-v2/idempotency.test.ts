import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test } from 'node:test'
import { PRICE, type RouterApp, startRouter } from '../../support/app/start-router.ts'
import { refusedWith } from '../../support/clients/router-client.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'
import { accepted, done, fakeModel, gate, refusedBy } from '../../support/providers/fake-provider.ts'
import { waitUntil } from '../../support/wait-until.ts'

const DAY_MS = 86_400_000

/** Waits for something that happens on the other side of the service. */
async function balanceOf(app: RouterApp): Promise<number | undefined> {
  return (await app.test.app.store.ledger.balance('payer'))?.available
}

test('of sixteen equal requests one runs, fifteen are told to wait, and then all get the same bytes', async () => {
  await using app = await startRouter({ account: { micros: 1_000_000, overrides: { routerConcurrency: 40 } } })
  const held = gate(done({ seed: 1, text: 'x'.repeat(100_000) }))
  app.provider.answer(held.answer)
  const send = () => app.client.run('fake/paid', { prompt: 'x' }, { key: 'same' })
  const all = Array.from({ length: 16 }, send)
  const early: Awaited<ReturnType<typeof send>>[] = []
  for (const one of all) void one.then((answer) => early.push(answer))
  await waitUntil(() => early.length === 15)
  for (const answer of early) {
    refusedWith(answer, 409, 'concurrency_limit_exceeded')
    assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
  }
  held.open()
  const first = (await Promise.all(all)).filter(({ status }) => status === 200)
  assert.equal(first.length, 1)
  assert.equal(first[0].headers['idempotent-replayed'], undefined)
  for (const replay of await Promise.all(Array.from({ length: 16 }, send))) {
    assert.equal(replay.headers['idempotent-replayed'], 'true')
    assert.equal(replay.headers['content-type'], first[0].headers['content-type'])
    assert.deepEqual(replay.bytes, first[0].bytes)
  }
  assert.equal(app.provider.submits.length, 1)
  assert.equal(await balanceOf(app), 960_000)
})

test('a key names one request: another body, path or query is refused without a hint when to try again', async () => {
  await using app = await startRouter()
  await app.client.run('fake/direct', { a: 1 }, { key: 'k' })
  const others = [
    app.client.run('fake/direct', { a: 2 }, { key: 'k' }),
    app.client.run('fake/direct', '{"a": 1}', { key: 'k' }),
    app.client.run('fake/paid', { prompt: 'x' }, { key: 'k' }),
    app.client.run('fake/direct?x=1', { a: 1 }, { key: 'k' }),
    app.client.post('/v2/models/fake/direct/requests', { a: 1 }, { key: 'k' }),
  ]
  for (const answer of await Promise.all(others)) {
    refusedWith(answer, 409, 'invalid_input')
    assert.equal(answer.headers['retry-after'], undefined)
  }
  assert.equal(app.provider.submits.length, 1)
})

test('a key has 1 to 255 characters and is sent once', async () => {
  await using app = await startRouter()
  for (const key of [' ', 'x'.repeat(256)]) {
    refusedWith(await app.client.run('fake/direct', {}, { key }), 400, 'invalid_input')
  }
  assert.equal((await app.client.run('fake/direct', {}, { key: 'x'.repeat(255) })).status, 200)
})

test('the same text is another key for another account', async () => {
  await using first = await startRouter({ account: { micros: 1_000_000 } })
  await first.client.run('fake/direct', { a: 1 }, { key: 'k' })
  await using second = await startRouter({ account: { id: 'other', micros: 1_000_000 } })
  assert.equal((await second.client.run('fake/direct', { a: 2 }, { key: 'k' })).status, 200)
})

test('every refusal before dispatch leaves the key free', async () => {
  await using app = await startRouter({ settings: { routerMaxCalls: '1' }, patch: { router: { maxBodyBytes: 1024 } } })
  const send = (model: string, body: unknown) => app.client.run(model, body, { key: 'k' })
  refusedWith(await send('fake/listed', {}), 403, 'not_enabled')
  refusedWith(await send('fake/none', {}), 404, 'model_not_found')
  refusedWith(await send('fake/strict', {}), 422, 'invalid_input')
  refusedWith(await send('fake/strict', '{'), 400, 'invalid_input')
  refusedWith(await send('fake/strict', { prompt: 'x'.repeat(2000) }), 413, 'invalid_input')
  const held = gate()
  app.provider.answer(held.answer)
  const running = app.client.run('fake/direct', {})
  await waitUntil(() => app.provider.submits.length === 1)
  refusedWith(await send('fake/direct', {}), 429, 'concurrency_limit_exceeded')
  held.open()
  await running
  assert.equal((await send('fake/direct', { now: 'it runs' })).status, 200)
})

test('an input that a provider refused is an answer; one that could not be sent to it leaves the key free', async () => {
  await using app = await startRouter()
  const run = (key: string) => app.client.run('fake/direct', {}, { key })
  app.provider.answer(refusedBy('invalid', { upstreamStatus: 400 }), done({ never: 'made' }))
  refusedWith(await run('a'), 400, 'invalid_input')
  assert.equal(refusedWith(await run('a'), 400, 'invalid_input').headers['idempotent-replayed'], 'true')
  app.provider.answer(refusedBy('invalid'), done({ second: 'try' }))
  refusedWith(await run('b'), 400, 'invalid_input')
  assert.deepEqual((await run('b')).json, { second: 'try' })
})

test('a refusal for its content is an answer and told again', async () => {
  await using app = await startRouter()
  app.provider.answer(refusedBy('policy', { upstreamStatus: 200, generation: 'ended' }))
  const first = refusedWith(await app.client.run('fake/direct', {}, { key: 'k' }), 400, 'content_policy_violation')
  const again = refusedWith(await app.client.run('fake/direct', {}, { key: 'k' }), 400, 'content_policy_violation')
  assert.deepEqual(again.bytes, first.bytes)
  assert.equal(first.headers['idempotent-replayed'], undefined)
  assert.equal(again.headers['idempotent-replayed'], 'true')
  assert.equal(again.headers['x-service-upstream-status'], '200')
  assert.equal(app.provider.submits.length, 1)
})

test('a failure that left nothing behind frees the key; one that may have does not', async () => {
  await using app = await startRouter()
  app.provider.answer(refusedBy('failed', { upstreamStatus: 503 }), done({ second: 'try' }))
  refusedWith(await app.client.run('fake/direct', {}, { key: 'a' }), 502, 'provider_error')
  assert.deepEqual((await app.client.run('fake/direct', {}, { key: 'a' })).json, { second: 'try' })
  app.provider.answer(refusedBy('timeout', { generation: 'possible' }), done({ never: 'made' }))
  refusedWith(await app.client.run('fake/direct', {}, { key: 'b' }), 504, 'provider_timeout')
  refusedWith(await app.client.run('fake/direct', {}, { key: 'b' }), 409, 'invalid_input')
  app.provider.answer(refusedBy('failed', { generation: 'ended', upstreamStatus: 200 }))
  refusedWith(await app.client.run('fake/direct', {}, { key: 'c' }), 502, 'provider_error')
  const again = refusedWith(await app.client.run('fake/direct', {}, { key: 'c' }), 502, 'provider_error')
  assert.equal(again.headers['idempotent-replayed'], 'true')
})

test('where the provider makes no second generation, an unknown outcome is asked for again', async () => {
  await using app = await startRouter({ provider: { deduplicates: true }, account: { micros: 1_000_000 } })
  app.provider.answer(refusedBy('timeout', { generation: 'possible' }), done({ the: 'first' }))
  refusedWith(await app.client.run('fake/paid', { prompt: 'x' }, { key: 'k' }), 504, 'provider_timeout')
  assert.equal(await balanceOf(app), 1_000_000)
  assert.deepEqual((await app.client.run('fake/paid', { prompt: 'x' }, { key: 'k' })).json, { the: 'first' })
  assert.equal(app.provider.generations(), 1)
  assert.equal(await balanceOf(app), 960_000)
})

test('a repeat that does not get through says nothing about the first: its key stays with the same submit', async () => {
  await using app = await startRouter({ provider: { deduplicates: true } })
  const run = () => app.client.run('fake/direct', {}, { key: 'k' })
  app.provider.answer(refusedBy('timeout', { generation: 'possible' }))
  refusedWith(await run(), 504, 'provider_timeout')
  app.provider.answer(refusedBy('unavailable'))
  refusedWith(await run(), 503, 'service_unavailable')
  app.provider.answer(refusedBy('failed', { upstreamStatus: 429 }))
  refusedWith(await run(), 502, 'provider_error')
  app.provider.answer(done({ the: 'first' }))
  assert.deepEqual((await run()).json, { the: 'first' })
  assert.deepEqual([app.provider.submits.length, app.provider.generations()], [4, 1])
  assert.deepEqual(
    app.provider.submits.map(({ isRepeat }) => isRepeat),
    [false, true, true, true],
  )
})

test('a replay works with an empty balance', async () => {
  await using app = await startRouter({ account: { micros: 40_000 } })
  assert.equal((await app.client.run('fake/paid', { prompt: 'x' }, { key: 'k' })).status, 200)
  refusedWith(await app.client.run('fake/paid', { prompt: 'x' }, { key: 'new' }), 402, 'insufficient_credits')
  const replay = await app.client.run('fake/paid', { prompt: 'x' }, { key: 'k' })
  assert.equal(replay.headers['idempotent-replayed'], 'true')
})

test('a record lives for 24 hours from its first use, and a retry does not extend it', async () => {
  const clock = createFixedClock(new Date())
  await using app = await startRouter({ clock })
  await app.client.run('fake/direct', {}, { key: 'k' })
  clock.advance(DAY_MS - 1000)
  assert.equal((await app.client.run('fake/direct', {}, { key: 'k' })).headers['idempotent-replayed'], 'true')
  clock.advance(2000)
  assert.equal((await app.client.run('fake/direct', {}, { key: 'k' })).headers['idempotent-replayed'], undefined)
  assert.equal(app.provider.submits.length, 2)
})

test('an answer beyond the replay limit is delivered once', async () => {
  await using app = await startRouter({ patch: { router: { maxReplayBytes: 1024 } } })
  app.provider.answer(done({ text: 'x'.repeat(200_000) }))
  const first = await app.client.run('fake/direct', {}, { key: 'k' })
  assert.equal(first.bytes.length, 200_011)
  refusedWith(await app.client.run('fake/direct', {}, { key: 'k' }), 409, 'invalid_input')
})

test("an answer with the provider's own address is told again for minutes, and of a polled model not at all", async () => {
  const clock = createFixedClock(new Date())
  const hostAssets = async ({ body }: { body: Buffer }) => ({ body, hasForeignUrls: true })
  await using app = await startRouter({ clock, overrides: { hostAssets } })
  app.provider.answer(done({ url: 'https://elsewhere' }))
  await app.client.run('fake/direct', {}, { key: 'k' })
  clock.advance(4 * 60_000)
  assert.equal((await app.client.run('fake/direct', {}, { key: 'k' })).status, 200)
  clock.advance(2 * 60_000)
  refusedWith(await app.client.run('fake/direct', {}, { key: 'k' }), 409, 'invalid_input')
  app.provider.answer(accepted({}))
  app.provider.pollAnswer(done({ url: 'https://elsewhere' }))
  assert.equal((await app.client.run('fake/polled', {}, { key: 'p' })).status, 200)
  refusedWith(await app.client.run('fake/polled', {}, { key: 'p' }), 409, 'invalid_input')
})

test('what a provider answered is told again, though it may have made something; only silence is a 409', async () => {
  await using app = await startRouter({ account: { micros: 1_000_000 } })
  const ANSWERED = [
    ['failed', 500, 502, 'provider_error'],
    ['failed', 418, 502, 'provider_error'],
    ['timeout', 504, 504, 'provider_timeout'],
  ] as const
  for (const [reason, upstreamStatus, status, type] of ANSWERED) {
    app.provider.answer(refusedBy(reason, { upstreamStatus, generation: 'possible' }), done({ second: true }))
    const send = () => app.client.run('fake/paid', { prompt: 'x' }, { key: `answered ${upstreamStatus}` })
    const first = refusedWith(await send(), status, type)
    for (const again of [await send(), await send()]) {
      assert.deepEqual([again.status, again.text], [first.status, first.text])
      assert.equal(again.headers['x-service-upstream-status'], String(upstreamStatus))
      assert.equal(again.headers['idempotent-replayed'], 'true')
    }
  }
  app.provider.answer(refusedBy('failed', { generation: 'possible' }))
  const silent = () => app.client.run('fake/paid', { prompt: 'x' }, { key: 'silent' })
  refusedWith(await silent(), 502, 'provider_error')
  refusedWith(await silent(), 409, 'invalid_input')
  assert.equal(app.provider.submits.length, ANSWERED.length + 1)
  assert.equal(await balanceOf(app), 1_000_000)
})

test('a provider that makes no second generation is asked again, also when it answered', async () => {
  await using app = await startRouter({ provider: { deduplicates: true } })
  app.provider.answer(refusedBy('failed', { upstreamStatus: 500, generation: 'possible' }), done({ second: true }))
  refusedWith(await app.client.run('fake/direct', {}, { key: 'k' }), 502, 'provider_error')
  assert.deepEqual((await app.client.run('fake/direct', {}, { key: 'k' })).json, { second: true })
})

test('a deadline lets go of a polled call, and the same key collects it', async () => {
  await using app = await startRouter({ models: [fakeModel('fake/quick', { returns: 'poll', deadline_seconds: 5 })] })
  app.provider.answer(accepted({ task: 1 }))
  const late = refusedWith(await app.client.run('fake/quick', {}, { key: 'k' }), 504, 'deadline_exceeded')
  assert.match(String(late.headers['retry-after']), /^[1-9]\d*$/)
  assert.equal(late.headers['x-service-upstream-status'], undefined)
  app.provider.pollAnswer(done({ at: 'last' }))
  const collected = await app.client.run('fake/quick', {}, { key: 'k' })
  assert.deepEqual([collected.json, collected.headers['idempotent-replayed']], [{ at: 'last' }, 'true'])
  assert.equal(app.provider.submits.length, 1)
})

test('without a key a deadline promises nothing, and says that the call is charged all the same', async () => {
  const models = [
    fakeModel('fake/quick', { price: PRICE, returns: 'poll', deadline_seconds: 5 }),
    fakeModel('fake/slow', { price: PRICE, deadline_seconds: 5 }),
  ]
  await using app = await startRouter({ models, account: { micros: 1_000_000 } })
  app.provider.answer(accepted({ task: 1 }))
  const polled = refusedWith(await app.client.run('fake/quick', {}), 504, 'deadline_exceeded')
  const held = gate()
  app.provider.answer(held.answer)
  const direct = refusedWith(await app.client.run('fake/slow', {}), 504, 'deadline_exceeded')
  app.provider.pollAnswer(done({ at: 'last' }))
  held.open()
  for (const { headers, json } of [polled, direct]) {
    assert.equal(headers['retry-after'], undefined)
    assert.match(json.detail, /charged once if it ends well.*without an Idempotency-Key.*a second call/)
    assert.doesNotMatch(json.detail, /collects/)
  }
  // Both run on, and both are paid for.
  await waitUntil(async () => (await app.test.app.store.ledger.balance('payer'))?.held === 0)
  assert.equal(await balanceOf(app), 920_000)
})

test('a deadline of a direct call promises nothing, but its answer is kept', async () => {
  await using app = await startRouter({ models: [fakeModel('fake/slow', { deadline_seconds: 5 })] })
  const held = gate()
  app.provider.answer(held.answer)
  const late = refusedWith(await app.client.run('fake/slow', {}, { key: 'k' }), 504, 'deadline_exceeded')
  assert.equal(late.headers['retry-after'], undefined)
  held.open()
  const collected = await app.client.run('fake/slow', {}, { key: 'k' })
  assert.equal(collected.headers['idempotent-replayed'], 'true')
  assert.equal(app.provider.submits.length, 1)
})

test('a caller who goes away changes nothing: the call ends, is recorded and billed once', async () => {
  const lines: object[] = []
  const log = { debug() {}, info: (fields: object) => void lines.push(fields), warn() {}, error() {}, child: () => log }
  await using app = await startRouter({ log, account: { micros: 1_000_000 } })
  const held = gate()
  app.provider.answer(held.answer)
  await disconnectWhenRunning(app)
  refusedWith(await app.client.run('fake/paid', { prompt: 'x' }, { key: 'k' }), 409, 'concurrency_limit_exceeded')
  held.open()
  await waitUntil(() => lines.some((line) => 'errorType' in line && line.errorType === 'client_disconnected'))
  const collected = await app.client.run('fake/paid', { prompt: 'x' }, { key: 'k' })
  assert.equal(collected.headers['idempotent-replayed'], 'true')
  assert.equal(app.provider.submits.length, 1)
  assert.equal(await balanceOf(app), 960_000)
})

async function disconnectWhenRunning(app: RouterApp): Promise<void> {
  const { hostname, port } = new URL(app.client.url)
  const outgoing = request({
    hostname,
    port,
    path: '/v2/models/fake/paid',
    method: 'POST',
    agent: false,
    headers: { ...app.client.headers, 'content-type': 'application/json', 'idempotency-key': 'k' },
  })
  outgoing.on('error', () => {})
  outgoing.end(JSON.stringify({ prompt: 'x' }))
  await waitUntil(() => app.provider.submits.length === 1)
  const closed = new Promise<void>((resolve) => outgoing.once('close', () => resolve()))
  outgoing.destroy()
  await closed
}

test('polls that fail for a while are tolerated; then the caller is told, and the same key asks on', async () => {
  await using app = await startRouter()
  app.provider.answer(accepted({ task: 1 }))
  const failed = { outcome: 'unreachable' as const, message: 'reset', pollAfterMs: 1 }
  app.provider.pollAnswer(failed, failed, done({ after: 'two' }))
  assert.deepEqual((await app.client.run('fake/polled', {}, { key: 'a' })).json, { after: 'two' })
  app.provider.pollAnswer(failed)
  const told = refusedWith(await app.client.run('fake/polled', {}, { key: 'b' }), 502, 'provider_error')
  assert.equal(told.headers['x-service-upstream-status'], undefined)
  app.provider.pollAnswer(done({ in: 'the end' }))
  assert.deepEqual((await app.client.run('fake/polled', {}, { key: 'b' })).json, { in: 'the end' })
  assert.equal(app.provider.submits.length, 2)
})

test('a stop lets running calls finish; what has a handle is collected by the next process', async () => {
  const first = await startRouter({ account: { micros: 1_000_000 }, settings: { drainTimeout: '0s' } })
  first.provider.answer(accepted({ task: 'left' }))
  const running = first.client.run('fake/paid-polled', {}, { key: 'k' })
  await waitUntil(() => first.provider.polls.length > 0)
  await first.test.app.drain()
  refusedWith(await running, 503, 'service_unavailable')
  first.provider.pollAnswer(done({ made: 'once' }))
  await using second = await first.restart()
  const collected = await second.client.run('fake/paid-polled', {}, { key: 'k' })
  assert.deepEqual([collected.json, collected.headers['idempotent-replayed']], [{ made: 'once' }, 'true'])
  assert.deepEqual(second.provider.polls.at(-1), { task: 'left' })
  assert.equal(second.provider.submits.length, 1)
  assert.equal(await balanceOf(second), 960_000)
})
