/** Callers whose socket goes away, in every way a socket can: the call runs on, is billed once, and its key collects it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { type RouterApp, startRouter } from '../../support/app/start-router.ts'
import { refusedWith } from '../../support/clients/router-client.ts'
import { accepted, done, gate } from '../../support/providers/fake-provider.ts'
import { waitUntil } from '../../support/wait-until.ts'

const PRICE_MICROS = 40_000
const CREDIT = 1_000_000

interface Line {
  readonly status?: number
  readonly errorType?: string
}

async function startListening() {
  const lines: Line[] = []
  const log = { debug() {}, info: (fields: object) => void lines.push(fields), warn() {}, error() {}, child: () => log }
  const app = await startRouter({ log, account: { micros: CREDIT } })
  return {
    app,
    isLogged: () => lines.some(({ status, errorType }) => status === 499 && errorType === 'client_disconnected'),
  }
}

/** A request as bytes on a socket of its own; `cut` is how much of its body leaves. */
async function open(app: RouterApp, model: string, cut = Number.POSITIVE_INFINITY): Promise<Socket> {
  const { hostname, port } = new URL(app.client.url)
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
  socket.on('end', () => socket.end())
  socket.on('error', () => {})
  await once(socket, 'connect')
  const body = JSON.stringify({ prompt: 'x' })
  const head = [
    `POST /v2/models/${model} HTTP/1.1`,
    `host: ${hostname}:${port}`,
    `x-api-key: ${app.client.headers['x-api-key']}`,
    'content-type: application/json',
    'idempotency-key: k',
    `content-length: ${body.length}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body.slice(0, cut)}`)
  return socket
}

/** Until its call has ended the key is in use. */
async function collect(app: RouterApp, model: string) {
  for (;;) {
    const answer = await app.client.run(model, { prompt: 'x' }, { key: 'k' })
    if (answer.status !== 409) return answer
    refusedWith(answer, 409, 'concurrency_limit_exceeded')
  }
}

async function isBilledOnce({ test: { app } }: RouterApp): Promise<void> {
  const balance = await app.store.ledger.balance('payer')
  assert.deepEqual([balance?.available, balance?.held], [CREDIT - PRICE_MICROS, 0])
}

for (const [how, leave] of [
  ['resets its connection', (socket: Socket) => socket.resetAndDestroy()],
  ['closes its connection', (socket: Socket) => socket.destroy()],
] as const) {
  test(`a caller who ${how} while a direct call runs`, async () => {
    const { app, isLogged } = await startListening()
    await using _app = app
    const held = gate(done({ made: 'alone' }))
    app.provider.answer(held.answer)
    const socket = await open(app, 'fake/paid')
    await waitUntil(() => app.provider.submits.length === 1)
    leave(socket)
    await once(socket, 'close')
    held.open()
    const collected = await collect(app, 'fake/paid')
    assert.deepEqual([collected.json, collected.headers['idempotent-replayed']], [{ made: 'alone' }, 'true'])
    assert.equal(app.provider.submits.length, 1)
    await waitUntil(isLogged)
    await isBilledOnce(app)
  })

  test(`a caller who ${how} while a task is polled`, async () => {
    const { app, isLogged } = await startListening()
    await using _app = app
    app.provider.answer(accepted({ task: 1 }))
    const socket = await open(app, 'fake/paid-polled')
    await waitUntil(() => app.provider.polls.length > 1)
    leave(socket)
    await once(socket, 'close')
    app.provider.pollAnswer(done({ made: 'alone' }))
    const collected = await collect(app, 'fake/paid-polled')
    assert.deepEqual([collected.json, collected.headers['idempotent-replayed']], [{ made: 'alone' }, 'true'])
    assert.equal(app.provider.submits.length, 1)
    await waitUntil(isLogged)
    await isBilledOnce(app)
  })
}

test('a caller who goes away in the middle of the body has called nothing', async () => {
  const { app } = await startListening()
  await using _app = app
  const socket = await open(app, 'fake/paid', 5)
  socket.resetAndDestroy()
  await once(socket, 'close')
  assert.equal(app.provider.submits.length, 0)
  assert.equal((await collect(app, 'fake/paid')).headers['idempotent-replayed'], undefined)
  await isBilledOnce(app)
})

for (const model of ['fake/paid', 'fake/paid-polled']) {
  test(`a caller who ended its own side and waits gets the answer of ${model}, which its key still collects`, async () => {
    const { app, isLogged } = await startListening()
    await using _app = app
    const held = gate(done({ made: 'for you' }))
    app.provider.answer(model === 'fake/paid' ? held.answer : accepted({ task: 1 }))
    const socket = await open(app, model, Number.POSITIVE_INFINITY)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    await waitUntil(() => app.provider.submits.length === 1)
    socket.end()
    await once(socket, 'finish')
    held.open()
    app.provider.pollAnswer(done({ made: 'for you' }))
    await once(socket, 'close')
    assert.match(text, /^HTTP\/1\.1 200 .*\{"made":"for you"\}$/s)
    await waitUntil(isLogged)
    const collected = await collect(app, model)
    assert.deepEqual([collected.json, collected.headers['idempotent-replayed']], [{ made: 'for you' }, 'true'])
    await isBilledOnce(app)
  })
}
