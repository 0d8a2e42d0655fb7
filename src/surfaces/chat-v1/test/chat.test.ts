/** OpenAI's own client, unmodified, against chat models of the catalogue. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import OpenAI, { APIError } from 'openai'
import { type Log, silentLog } from '../../../../lib/log.ts'
import { type SharedApp, startShared, type Tenant } from '../../../../test/support/app/start-shared.ts'
import { openSpecChecks } from '../../../../test/support/clients/check-against-spec.ts'
import { type ChatFake, eventsOf, startChatFake, USED } from '../../../../test/support/providers/chat-fake.ts'
import { waitUntil } from '../../../../test/support/wait-until.ts'

const { checkAgainstSchema } = openSpecChecks('chat.openapi.json')
const GRANT = 1_000_000_000
// Of gpt-5-mini: a quarter of a dollar for a million tokens that go in, two dollars for a million that come out.
const PRICE = Math.ceil(USED.prompt_tokens * 0.25 + USED.completion_tokens * 2)
const MODEL = 'openai/gpt-5-mini'

describe('a conversation', () => {
  const env = { ATELIER_SECRET_KEY: 'ab'.repeat(32) }
  let folder: string
  let providers: string
  let fake: ChatFake
  let app: SharedApp
  let tenant: Tenant
  let client: OpenAI
  let count = 0
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'atelier-chat-'))
    fake = await startChatFake()
    const settings = { key: 'sk-of-the-service', base_url: fake.url }
    providers = path.join(folder, 'providers.json')
    await writeFile(providers, JSON.stringify({ openai: settings, openrouter: settings }))
    app = await startShared({ workers: '0', providers }, { env })
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    await fake[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })
  // Each with an account of its own, so that its calls can be counted.
  beforeEach(async () => {
    count += 1
    tenant = await app.account(`tenant-${count}`, { creditFloorMicros: 0 })
    await app.admin('POST', `/accounts/${tenant.id}/grants`, { micros: GRANT })
    client = clientOf(tenant)
    fake.requests.length = 0
    fake.made.clear()
  })

  const clientOf = ({ key }: Tenant) => new OpenAI({ baseURL: `${app.url}/v1`, apiKey: key })
  const say = (content: string, more: object = {}) => ({
    model: MODEL,
    messages: [{ role: 'user' as const, content }],
    ...more,
  })
  const charged = async () => {
    const { balance } = (await app.admin('GET', `/accounts/${tenant.id}`)).json
    assert.equal(balance.held_micros, 0)
    return GRANT - balance.available_micros
  }
  const refused = async (asked: Promise<unknown>): Promise<APIError> => {
    const error = await asked.then(
      () => assert.fail('it was answered'),
      (thrown: unknown) => thrown,
    )
    assert.ok(error instanceof APIError, String(error))
    checkAgainstSchema('ErrorAnswer', { error: error.error })
    return error
  }

  test('is answered by the provider, under its own name of the model, and charged what it used', async () => {
    const answer = await client.chat.completions.create(say('good morning'))
    checkAgainstSchema('ChatCompletion', answer)
    assert.equal(answer.choices[0]?.message.content, 'good morning')
    assert.equal(answer.model, 'gpt-5-mini')
    assert.deepEqual(answer.usage, USED)
    const [sent] = fake.requests
    assert.deepEqual([sent?.path, sent?.key], ['/chat/completions', 'Bearer sk-of-the-service'])
    assert.equal(await charged(), PRICE)
  })

  test('reaches a model of a provider that has many by the name behind the id, and its own choice without one', async () => {
    for (const [model, sent] of [
      ['openrouter/chat-completions/vendor/name', 'vendor/name'],
      ['openrouter/chat-completions', 'openrouter/auto'],
    ])
      assert.equal((await client.chat.completions.create(say('x', { model }))).model, sent)
  })

  test('keeps every digit on its way', async () => {
    const body =
      '\ufeff{"model": "openai/gpt-5-mini", "seed": 12345678901234567890, "messages": [{"role": "user", "content": "x"}]}'
    const answer = await tenant.call('/v1/chat/completions', { method: 'POST', body })
    assert.equal(answer.status, 200, answer.text)
    assert.match(fake.requests[0]?.text ?? '', /^{"model": "gpt-5-mini", "seed": 12345678901234567890,/)
  })

  test('with a key is made and charged once, however often it is sent', async () => {
    const ask = (content: string) =>
      client.chat.completions.create(say(content), { headers: { 'Idempotency-Key': 'the only one' } }).withResponse()
    const { response: first } = await ask('once')
    const { data, response: second } = await ask('once')
    assert.deepEqual(
      [first.headers.get('idempotent-replayed'), second.headers.get('idempotent-replayed')],
      [null, 'true'],
    )
    assert.equal(data.choices[0]?.message.content, 'once')
    assert.deepEqual([fake.made.get('once'), await charged()], [1, PRICE])
    const other = await refused(ask('twice'))
    assert.deepEqual([other.status, other.code], [409, 'idempotency_key_in_use'])
    assert.equal(fake.made.get('twice'), undefined)
  })

  test('that the provider refuses or fails is told in the words of the client, is not sent again, and costs nothing', async () => {
    const cases = [
      // Also by the one that stands in.
      ['forbidden', 502, 'provider_error', 2],
      ['too long', 400, 'invalid_value', 1],
      ['broken before', 502, 'provider_error', 1],
      ['broken after', 502, 'provider_error', 1],
    ] as const
    for (const [content, status, code, sends] of cases) {
      fake.requests.length = 0
      const error = await refused(client.chat.completions.create(say(content)))
      assert.deepEqual([content, error.status, error.code, fake.requests.length], [content, status, code, sends])
    }
    assert.equal(await charged(), 0)
  })

  test('that its provider surely did not take goes on elsewhere, once, and costs what it costs there', async () => {
    // Each with a model of its own: one whose calls fail is paused for all.
    const said = say('costs elsewhere', { model: 'openai/gpt-5-nano' })
    const headers = { 'Idempotency-Key': 'moved' }
    const { data, response } = await client.chat.completions.create(said, { headers }).withResponse()
    assert.deepEqual([data.model, data.choices[0]?.message.content], ['openai/gpt-5-nano', 'costs elsewhere'])
    assert.equal(response.headers.get('x-service-router-fallback-provider'), 'openrouter')
    assert.deepEqual(
      fake.requests.map(({ text }) => JSON.parse(text).model),
      ['gpt-5-nano', 'openai/gpt-5-nano'],
    )
    const again = await client.chat.completions.create(said, { headers }).withResponse()
    assert.deepEqual(again.data, data)
    assert.equal(again.response.headers.get('x-service-router-fallback-provider'), 'openrouter')
    assert.deepEqual([fake.made.get('costs elsewhere'), await charged()], [1, 321])
    const query = { fallback_provider: 'false' }
    const error = await refused(client.chat.completions.create(said, { query, maxRetries: 0 }))
    assert.deepEqual([error.status, fake.made.get('costs elsewhere')], [502, 1])
  })

  test('that is wrong in itself is refused by its parameter, and is not sent', async () => {
    const cases = [
      [{ model: 'openai/gpt-7' }, 404, 'model_not_found', 'model'],
      [{ model: 'gpt-5-mini' }, 404, 'model_not_found', 'model'],
      [{ model: 'openai/gpt-image-1' }, 404, 'model_not_found', 'model'],
      [{ model: 'openai/gpt-5-mini/other' }, 404, 'model_not_found', 'model'],
      [{ model: `openrouter/chat-completions/${'v'.repeat(300)}` }, 404, 'model_not_found', 'model'],
      [{ model: '/'.repeat(1_000_000) }, 404, 'model_not_found', 'model'],
      [{ model: '' }, 400, 'invalid_value', 'model'],
      [{ model: 'anthropic/claude-sonnet-4-6' }, 403, 'model_not_enabled', null],
      [{ messages: [] }, 400, 'invalid_value', 'messages'],
      [{ messages: [{ role: 'nobody', content: 'x' }] }, 400, 'invalid_value', 'messages[0].role'],
      [{ n: 2 }, 400, 'invalid_value', 'n'],
      [{ max_tokens: 0 }, 400, 'invalid_value', 'max_tokens'],
      [{ service_tier: 'priority' }, 400, 'invalid_value', 'service_tier'],
      [{ Max_Tokens: 5 }, 400, 'invalid_value', 'Max_Tokens'],
    ] as const
    for (const [more, status, code, param] of cases) {
      const error = await refused(client.chat.completions.create(say('x', more) as never))
      assert.deepEqual([more, error.status, error.code, error.param], [more, status, code, param], error.message)
    }
    assert.deepEqual(fake.requests, [])
    assert.equal(await charged(), 0)
  })

  test('without credit, without the right or with a bad key is refused', async () => {
    const poor = await app.account('poor', { creditFloorMicros: 0 })
    const quota = await refused(clientOf(poor).chat.completions.create(say('x')))
    assert.deepEqual([quota.status, quota.code, quota.type], [429, 'insufficient_quota', 'insufficient_quota'])
    const { json } = await app.admin('POST', `/accounts/${tenant.id}/keys`, { scopes: ['endpoints:run'] })
    const runner = new OpenAI({ baseURL: `${app.url}/v1`, apiKey: json.text })
    assert.equal((await refused(runner.chat.completions.create(say('x')))).status, 403)
    const stranger = new OpenAI({ baseURL: `${app.url}/v1`, apiKey: 'sk-nobody' })
    const unknown = await refused(stranger.chat.completions.create(say('x')))
    assert.deepEqual([unknown.status, unknown.code], [401, 'invalid_api_key'])
    assert.deepEqual(fake.requests, [])
  })

  test('goes with the own key of its account, which pays for it', async () => {
    const body = JSON.stringify({ key: 'sk-of-the-tenant' })
    assert.equal((await tenant.call('/api/v2/provider-keys/openai', { method: 'PUT', body })).status, 200)
    await client.chat.completions.create(say('mine'))
    assert.equal(fake.requests[0]?.key, 'Bearer sk-of-the-tenant')
    assert.equal(await charged(), 0)
  })

  test('is stopped by a budget of its account that is used up', async () => {
    const made = await app.admin('POST', `/accounts/${tenant.id}/budgets`, {
      ...{ name: 'small', subject: 'account', limit_usd: '0.000001', period: 'month' },
    })
    assert.equal(made.status, 201, made.text)
    const error = await refused(client.chat.completions.create(say('x')))
    assert.deepEqual([error.status, error.code], [429, 'insufficient_quota'])
    assert.match(error.message, /budget/)
  })

  const stream = (body: object, headers: object = {}) =>
    fetch(`${app.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ ...body, stream: true }),
    })
  const untilCharged = async () => {
    await waitUntil(async () => {
      const { balance } = (await app.admin('GET', `/accounts/${tenant.id}`)).json
      return balance.held_micros === 0 && balance.available_micros < GRANT
    })
    return charged()
  }
  // The last event of an answer that broke off.
  const FAREWELL =
    /data: {"error":{"message":"the provider broke off in the middle of its answer.*"code":"provider_error"}}\n\n$/

  test('comes word by word to a client that asks for a stream, and says what it used', async () => {
    const words: string[] = []
    let usage = null
    for await (const event of await client.chat.completions.create({ ...say('a b c'), stream: true })) {
      words.push(...event.choices.map(({ delta }) => delta.content ?? ''))
      usage = event.usage ?? usage
    }
    assert.deepEqual([words.join(''), usage], ['a b c', USED])
    assert.match(fake.requests[0]?.text ?? '', /"stream_options":{"include_usage":true}/)
    assert.equal(await untilCharged(), PRICE)
  })

  test('begins at the one that stands in where its own provider refuses us, and says so before its first byte', async () => {
    const answer = await stream(say('costs elsewhere too', { model: 'openai/gpt-4o' }))
    assert.equal(answer.headers.get('x-comfy-router-fallback-provider'), 'openrouter')
    assert.equal(await answer.text(), eventsOf('costs elsewhere too', { cost: 0.000321 }))
    assert.deepEqual([fake.requests.length, await untilCharged()], [2, 321])
    // Behind its first byte it goes nowhere.
    const broken = await stream(say('half a word and no more', { model: 'openai/gpt-4o' }))
    assert.equal(broken.headers.get('x-comfy-router-fallback-provider'), null)
    assert.match(await broken.text(), FAREWELL)
    assert.equal(fake.requests.length, 3)
  })

  test('passes through byte by byte, and is given again so to who repeats its key', async () => {
    const first = await stream(say('to be repeated'), { 'idempotency-key': 'a stream' })
    assert.deepEqual([first.status, first.headers.get('content-type')], [200, 'text/event-stream; charset=utf-8'])
    assert.equal(await first.text(), eventsOf('to be repeated'))
    const again = await stream(say('to be repeated'), { 'idempotency-key': 'a stream' })
    assert.deepEqual(
      [again.headers.get('idempotent-replayed'), await again.text()],
      ['true', eventsOf('to be repeated')],
    )
    assert.deepEqual([fake.made.get('to be repeated'), await charged()], [1, PRICE])
  })

  test('reaches its client before the provider is done, and goes on and is charged when that leaves', async () => {
    const gone = new AbortController()
    const events = await client.chat.completions.create(
      { ...say('gate of a garden'), stream: true },
      { signal: gone.signal, headers: { 'Idempotency-Key': 'left' } },
    )
    const { value } = await events[Symbol.asyncIterator]().next()
    assert.equal(value?.choices[0]?.delta.content, 'gate ')
    gone.abort()
    const busy = await stream(say('gate of a garden'), { 'idempotency-key': 'left' })
    assert.equal(busy.status, 409)
    fake.open()
    assert.equal(await untilCharged(), PRICE)
  })

  test('of a provider that says its price is charged that', async () => {
    const model = 'openrouter/chat-completions/vendor/name'
    assert.equal((await stream(say('costs a little', { model }))).status, 200)
    assert.equal(await untilCharged(), 321)
  })

  test('with a picture of megabytes in an event passes through whole', async () => {
    const asked = say('picture of a fox')
    const text = await (await stream(asked)).text()
    assert.equal(text.length, eventsOf('picture of a fox').length)
    assert.equal(text, eventsOf('picture of a fox'))
    assert.equal(await untilCharged(), PRICE)
  })

  test('gives what came before what nobody can read, and charges that', async () => {
    const text = await (await stream(say('mixed with garbage'))).text()
    assert.match(text, /^: a comment\n\ndata: .*"content":"mixed ".*\n\ndata: {"error":.*broke off in the middle/)
    assert.ok((await untilCharged()) > 0)
  })

  test('that breaks off in the middle says so, is charged by what came, and is never made again', async () => {
    for (const [content, isSaid] of [
      ['half a word', true],
      ['garbage it is', true],
      ['error it is', false],
    ] as const) {
      const key = { 'idempotency-key': content }
      const text = await (await stream(say(content), key)).text()
      assert.match(text, isSaid ? FAREWELL : /data: {"error":{"message":"overloaded"}}\n\n$/, content)
      assert.equal(await (await stream(say(content), key)).text(), text)
      assert.equal(fake.made.get(content), 1)
    }
    const error = await refused(
      (async () => {
        for await (const _ of await client.chat.completions.create({ ...say('half a word'), stream: true }));
      })(),
    )
    assert.match(error.message, /broke off in the middle/)
    // By the words of the question, and those that came of the answer: far less than the least of a whole one.
    const cost = await untilCharged()
    assert.ok(cost > 0 && cost < 4 * PRICE, String(cost))
  })

  test('of which nothing came costs nothing, and its key says that nobody knows more', async () => {
    const key = { 'idempotency-key': 'nothing' }
    assert.match(
      await (await stream(say('nothing at all', { model: 'openai/gpt-5' }), key)).text(),
      /^data: {"error":.*broke off before/,
    )
    const again = await stream(say('nothing at all', { model: 'openai/gpt-5' }), key)
    assert.deepEqual([again.status, fake.made.get('nothing at all')], [409, 1])
    const refusal = await stream(say('no events', { model: 'openai/gpt-5' }))
    assert.deepEqual([refusal.status, refusal.headers.get('x-should-retry')], [502, 'false'])
    assert.equal(await charged(), 0)
  })

  test('is not begun at a provider whose streams keep breaking off', async () => {
    // Nobody stands in for it.
    const model = 'openai/gpt-6-luna'
    for (let broken = 0; broken < 5; broken++) await (await stream(say('half a word', { model }))).text()
    const paused = await stream(say('half a word', { model }))
    assert.deepEqual([paused.status, paused.headers.has('retry-after')], [503, true])
    assert.equal(fake.made.get('half a word'), 5)
  })

  test('that is cut off because the service stops says nothing about its provider', async () => {
    const told: string[] = []
    const warn = (_: object, message: string) => void told.push(message)
    const log: Log = { ...silentLog, warn, child: () => log }
    await using other = await startShared({ workers: '0', providers, drainTimeout: '0s' }, { env, log })
    const caller = await other.account('caller', { creditFloorMicros: null })
    const body = JSON.stringify(say('gate of a garden', { stream: true }))
    const headers = { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' }
    const answers = await Promise.all(
      [1, 2, 3, 4, 5].map(() => fetch(`${other.url}/v1/chat/completions`, { method: 'POST', headers, body })),
    )
    const texts = Promise.all(answers.map((answer) => answer.text()))
    await other.service.app.drain()
    fake.open()
    for (const text of await texts) assert.match(text, FAREWELL)
    assert.deepEqual(
      told.filter((message) => /broke off|keep failing/.test(message)),
      Array.from({ length: 5 }, () => 'an answer broke off'),
    )
  })

  test('comes from the sandbox as from any provider', async () => {
    const text = await (await stream(say('Good morning', { model: 'sandbox/chat' }))).text()
    assert.match(
      text,
      /"content":"Good "[\s\S]*"content":"morning"[\s\S]*"usage":{"prompt_tokens":\d+[\s\S]*data: \[DONE\]\n\n$/,
    )
  })

  test('from the sandbox ends, however much it hears', async () => {
    const text = await (await stream(say('a '.repeat(500_000), { model: 'sandbox/chat' }))).text()
    assert.match(text, /data: \[DONE\]\n\n$/)
    assert.equal(text.match(/"content":"a /g)?.length, 5000)
  })

  test('finds its models in the list, as far as they run here and the key reaches them', async () => {
    const listed = async (from: OpenAI) => (await from.models.list()).data.map(({ id }) => id)
    const all = await listed(client)
    for (const id of [MODEL, 'openai/gpt-5', 'openrouter/chat-completions', 'sandbox/chat'])
      assert.ok(all.includes(id), id)
    for (const id of ['anthropic/claude-sonnet-4-6', 'bfl/flux-2-pro', 'sandbox/echo'])
      assert.equal(all.includes(id), false)
    const found = await client.models.retrieve(MODEL)
    assert.deepEqual([found.id, found.owned_by], [MODEL, 'openai'])
    const { json } = await app.admin('POST', `/accounts/${tenant.id}/keys`, { scopes: ['models:run'] })
    const runner = new OpenAI({ baseURL: `${app.url}/v1`, apiKey: json.text })
    assert.deepEqual(
      await listed(runner),
      all.filter((id) => id.includes('/')),
    )
    assert.equal((await refused(runner.models.retrieve('resize'))).status, 404)
    const { json: other } = await app.admin('POST', `/accounts/${tenant.id}/keys`, { scopes: ['endpoints:run'] })
    const endpoints = new OpenAI({ baseURL: `${app.url}/v1`, apiKey: other.text })
    assert.deepEqual(
      await listed(endpoints),
      all.filter((id) => !id.includes('/')),
    )
  })
})
