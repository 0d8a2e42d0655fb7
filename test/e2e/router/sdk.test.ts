/** The official client's `comfy.models.run` against the whole service: results, retries, abort, replay, every error class. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net'
import { after, before, test } from 'node:test'
import { ComfyError, comfy, routerErrors } from '@comfyorg/sdk'
import { silentLog } from '../../../lib/log.ts'
import type { ProviderRefusal } from '../../../src/domain/models/provider.ts'
import { RouterError } from '../../../src/domain/models/router-error.ts'
import { createAnswerRouterError, type RouterErrorType } from '../../../src/surfaces/router-v2/router-errors.ts'
import { createBrandHeaders } from '../../../src/surfaces/router-v2/router-operation.ts'
import { MODELS, type RouterApp, startRouter } from '../../support/app/start-router.ts'
import {
  accepted,
  createFakeProvider,
  done,
  fakeModel,
  gate,
  refusedBy,
} from '../../support/providers/fake-provider.ts'
import { waitUntil } from '../../support/wait-until.ts'

const ONCE = { retry: false } as const
const QUICK = { retry: { baseDelayMs: 5, maxDelayMs: 20 } }
const provider = createFakeProvider()
let app: RouterApp

before(async () => {
  const quick = fakeModel('fake/one-second', { deadline_seconds: 1 })
  app = await startRouter({
    provider,
    models: [...MODELS, quick],
    account: { micros: 1_000_000, overrides: { routerConcurrency: 2 } },
    overrides: {
      wrapCalls: (calls) => ({
        ...calls,
        admit: (call, ...rest) =>
          call.key === 'break' ? Promise.reject(new Error('boom')) : calls.admit(call, ...rest),
      }),
    },
  })
  point(app.client.url, app.client.headers['x-api-key'])
})
after(() => app[Symbol.asyncDispose]())

function point(baseUrl: string, credentials: string): void {
  comfy.config({ baseUrl, credentials })
}

interface Raised {
  readonly error: ComfyError
  /** The same answer as the client's own table of classes reads it. */
  readonly typed: routerErrors.RouterError
}

async function raised(model: string, input: Record<string, unknown>, options = {}): Promise<Raised> {
  const plainFetch = globalThis.fetch
  let answer: Response | null = null
  globalThis.fetch = async (...request) => {
    const response = await plainFetch(...request)
    answer = response.clone()
    return response
  }
  try {
    await comfy.models.run(model, input, { ...ONCE, ...options })
  } catch (error) {
    const last = answer as Response | null
    assert.ok(error instanceof ComfyError && last !== null, String(error))
    return { error, typed: routerErrors.toRouterError(last.status, last.headers, await last.json()) }
  } finally {
    globalThis.fetch = plainFetch
  }
  throw new Error(`${model} was answered`)
}

/** What a call raises when the provider answers so. */
function raisedBy(reason: ProviderRefusal['reason']): Promise<Raised> {
  provider.answer(refusedBy(reason))
  return raised('fake/direct', {})
}

test('a result comes back with its request id', async () => {
  provider.answer(done({ images: [{ url: 'x' }] }))
  const { data, requestId } = await comfy.models.run('fake/direct', { prompt: 'a cat' })
  assert.deepEqual(data, { images: [{ url: 'x' }] })
  assert.match(String(requestId), /^[0-9a-f-]{36}$/)
  provider.answer(accepted({ task: 1 }))
  provider.pollAnswer(done({ status: 'Ready' }))
  assert.deepEqual((await comfy.models.run('fake/polled', {})).data, { status: 'Ready' })
})

test('a connection that is cut before the answer is retried with the same key, and nothing is made twice', async () => {
  const made = provider.submits.length
  provider.answer(done({ made: 'once' }))
  const { hostname, port } = new URL(app.client.url)
  let cuts = 0
  // A proxy that loses the first answer: the call has run by then.
  const proxy = createTcpServer((socket) => {
    const upstream = connect(Number(port), hostname)
    socket.on('error', () => upstream.destroy()).pipe(upstream)
    upstream.on('error', () => socket.destroy())
    if (cuts++ > 0) upstream.pipe(socket)
    else upstream.once('data', () => socket.destroy())
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  point(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, app.client.headers['x-api-key'])
  try {
    const { data } = await comfy.models.run('fake/direct', { retried: true }, QUICK)
    assert.deepEqual(data, { made: 'once' })
    assert.equal(cuts, 2)
    assert.equal(provider.submits.length, made + 1)
  } finally {
    point(app.client.url, app.client.headers['x-api-key'])
    proxy.close()
  }
})

test('a provider that fails for a moment is asked again', async () => {
  provider.answer(refusedBy('failed', { upstreamStatus: 503 }), refusedBy('unavailable'), done({ third: 'time' }))
  assert.deepEqual((await comfy.models.run('fake/direct', {}, QUICK)).data, { third: 'time' })
})

test("a provider's failure that may have made something is what every retry of the client gets", async () => {
  const made = provider.submits.length
  provider.answer(refusedBy('failed', { upstreamStatus: 500, generation: 'possible' }), done({ never: true }))
  const plainFetch = globalThis.fetch
  const seen: string[] = []
  const enough = new AbortController()
  globalThis.fetch = async (...request) => {
    const response = await plainFetch(...request)
    seen.push(`${response.status} ${response.headers.get('x-comfy-error-type')}`)
    if (seen.length === 3) enough.abort()
    return response
  }
  try {
    await assert.rejects(comfy.models.run('fake/direct', { failing: true }, { ...QUICK, signal: enough.signal }))
  } finally {
    globalThis.fetch = plainFetch
  }
  assert.deepEqual(seen, Array(3).fill('502 provider_error'))
  assert.equal(provider.submits.length, made + 1)
})

test('an own key replays; an aborted call ends the same way for the service', async () => {
  provider.answer(done({ first: true }))
  const options = { ...ONCE, idempotencyKey: 'my-key' }
  await comfy.models.run('fake/direct', { a: 1 }, options)
  const made = provider.submits.length
  assert.deepEqual((await comfy.models.run('fake/direct', { a: 1 }, options)).data, { first: true })
  assert.equal(provider.submits.length, made)
  const held = gate(done({ finished: 'alone' }))
  provider.answer(held.answer)
  const stop = new AbortController()
  const aborted = comfy.models.run('fake/direct', { b: 1 }, { ...ONCE, idempotencyKey: 'gone', signal: stop.signal })
  await waitUntil(() => provider.submits.length !== made)
  stop.abort()
  await assert.rejects(aborted)
  held.open()
  const collected = await collect()
  assert.deepEqual(collected.data, { finished: 'alone' })

  /** The abandoned call may need a moment to end; until then its key is in use. */
  async function collect() {
    for (;;) {
      try {
        return await comfy.models.run('fake/direct', { b: 1 }, { ...ONCE, idempotencyKey: 'gone' })
      } catch (error) {
        assert.ok(error instanceof ComfyError && error.code === 'concurrency_limit_exceeded')
      }
    }
  }
})

const seen = new Set<RouterErrorType>()
const RAISED: [type: RouterErrorType, class_: new (...args: never[]) => Error, raise: () => Promise<Raised>][] = [
  ['invalid_input', routerErrors.InvalidInput, () => raised('fake/strict', { n: 9 })],
  ['content_policy_violation', routerErrors.ContentPolicyViolation, () => raisedBy('policy')],
  ['provider_error', routerErrors.ProviderError, () => raisedBy('failed')],
  ['provider_timeout', routerErrors.ProviderTimeout, () => raisedBy('timeout')],
  [
    'insufficient_credits',
    routerErrors.InsufficientCredits,
    () => withAccount('poor', 0, () => raised('fake/paid', {})),
  ],
  ['model_not_found', routerErrors.ModelNotFound, () => raised('nobody/nothing', {})],
  ['unauthorized', routerErrors.Unauthorized, () => withKey('nonsense', () => raised('fake/direct', {}))],
  ['forbidden', routerErrors.Forbidden, () => raised('fake/special', {})],
  ['concurrency_limit_exceeded', routerErrors.ConcurrencyLimitExceeded, whileBusy],
  ['internal_error', routerErrors.InternalError, () => raised('fake/direct', {}, { idempotencyKey: 'break' })],
  ['deadline_exceeded', routerErrors.DeadlineExceeded, whileHeld],
  ['not_enabled', routerErrors.NotEnabled, () => raised('fake/listed', {})],
  ['service_unavailable', routerErrors.ServiceUnavailable, () => raisedBy('unavailable')],
  [
    'rate_limited',
    routerErrors.RateLimited,
    () => withAccount('hasty', 0, () => raised('fake/direct', {}), { requestsPerMinute: 1, requestBurst: 1 }),
  ],
  ['client_disconnected', routerErrors.ClientDisconnected, toTheGone],
]

for (const [type, class_, raise] of RAISED) {
  test(`${type} is raised as ${class_.name}`, async () => {
    const { error, typed } = await raise()
    assert.deepEqual([error.code, typed.errorType], [type, type])
    assert.ok(typed instanceof class_, typed.constructor.name)
    assert.match(String(error.requestId), /^[0-9a-f-]{36}$/)
    seen.add(type)
  })
}

test('that was every class there is', () => {
  assert.equal(seen.size, 15)
})

async function withKey<T>(key: string, work: () => Promise<T>): Promise<T> {
  point(app.client.url, key)
  try {
    return await work()
  } finally {
    point(app.client.url, app.client.headers['x-api-key'])
  }
}

/** A service of its own: accounts are put into a folder before it is opened. */
async function withAccount<T>(id: string, micros: number, work: () => Promise<T>, overrides = {}): Promise<T> {
  await using other = await startRouter({ account: { id, micros, overrides } })
  point(other.client.url, other.client.headers['x-api-key'])
  try {
    if ('requestsPerMinute' in overrides) await other.client.call('/v2/models')
    return await work()
  } finally {
    point(app.client.url, app.client.headers['x-api-key'])
  }
}

async function whileBusy(): Promise<Raised> {
  const held = gate()
  provider.answer(held.answer)
  const made = provider.submits.length
  const running = [comfy.models.run('fake/direct', { a: 1 }, ONCE), comfy.models.run('fake/direct', { a: 2 }, ONCE)]
  await waitUntil(() => provider.submits.length >= made + 2)
  try {
    return await raised('fake/direct', { a: 3 })
  } finally {
    held.open()
    await Promise.all(running)
  }
}

async function whileHeld(): Promise<Raised> {
  const held = gate()
  provider.answer(held.answer)
  try {
    return await raised('fake/one-second', {})
  } finally {
    held.open()
  }
}

/** The service never sends it, because nobody is left; what it would send is read all the same. */
async function toTheGone(): Promise<Raised> {
  const answerError = createAnswerRouterError(silentLog, createBrandHeaders(['Service', 'Comfy']))
  const server = createServer((_request, response) => {
    const { status, headers, body } = answerError(new RouterError('disconnected', 'the caller went away'), 'x')
    response.writeHead(status, { ...headers, 'X-Comfy-Request-Id': '00000000-0000-4000-8000-000000000000' }).end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  point(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 'key')
  try {
    return await raised('fake/direct', {})
  } finally {
    point(app.client.url, app.client.headers['x-api-key'])
    server.closeAllConnections()
    server.close()
  }
}
