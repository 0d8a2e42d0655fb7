/** Bodies in memory have a budget per caller and in total, so that unfinished bodies cannot block other callers for long. */
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { ADMIN_TOKEN, type SharedApp, startShared, type Tenant } from '../support/app/start-shared.ts'
import { type Answer, call } from '../support/clients/call.ts'
import { waitUntil } from '../support/wait-until.ts'

const KIB = 1024
const PART = 'x'.repeat(600 * KIB)

let shared: SharedApp
const sockets: Socket[] = []
let tenants: readonly Tenant[]
before(async () => {
  // One caller has room for one body of the largest size, all together for two.
  shared = await startShared(
    { maxBody: '1MiB' },
    {
      patch: {
        http: { maxBodiesPerCallerBytes: KIB * KIB, maxBodiesBytes: 2 * KIB * KIB },
        router: { maxBodyBytes: KIB * KIB },
      },
    },
  )
  tenants = await Promise.all(['one', 'two', 'three'].map((id) => shared.account(id)))
})
after(async () => {
  for (const socket of sockets) socket.destroy()
  await shared[Symbol.asyncDispose]()
})

/** Sends the head of a request and the first part of its body, and no more; `others`: how many such bodies are held already. */
async function beginBody(tenant: Tenant, path: string, others = 0): Promise<Socket> {
  const { hostname, port } = new URL(shared.url)
  // The body of a request that was answered may be held for a moment more.
  await untilHeld(others * PART.length)
  const socket = connect({ host: hostname, port: Number(port) })
  sockets.push(socket)
  const head = `POST ${path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${tenant.key}\r\nX-API-Key: ${tenant.key}\r\n`
  socket.write(`${head}Content-Length: ${KIB * KIB}\r\n\r\n${PART}`)
  await untilHeld((others + 1) * PART.length)
  return socket
}

async function heldBytes(): Promise<number> {
  const { text } = await call(shared.url, '/metrics', { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })
  return Number(/^atelier_body_bytes (\d+)$/m.exec(text)?.[1])
}

async function untilHeld(bytes: number): Promise<void> {
  let held: number | null = null
  const isHeld = async () => {
    held = await heldBytes()
    return held === bytes
  }
  await waitUntil(isHeld, () => `${bytes} bytes are held, and not ${held}`)
}

const BODY = JSON.stringify({ workflow: {}, prompt: {}, filling: PART })
const DOORS: Readonly<Record<string, readonly [busy: number, word: RegExp, free: number]>> = {
  '/api/v2/jobs': [429, /"queue_full"/, 422],
  '/v2/models/sandbox/echo': [503, /"service_unavailable"/, 200],
  '/v2/models/sandbox/echo/estimate': [503, /"service_unavailable"/, 200],
  '/api/prompt': [503, /"overloaded"/, 400],
  '/api/userdata/notes.json': [503, /"overloaded"/, 200],
}

function send(tenant: Tenant, path: string): Promise<Answer> {
  return tenant.call(path, { method: 'POST', body: BODY, headers: { 'x-api-key': tenant.key } })
}

test('a caller whose bodies fill its room is told to come back, at every door; others are served', async () => {
  const [one, two] = tenants
  const socket = await beginBody(one, '/v2/models/sandbox/echo')
  for (const [path, [busy, word, free]] of Object.entries(DOORS)) {
    const refused = await send(one, path)
    assert.equal(refused.status, busy, `${path}: ${refused.text}`)
    assert.match(refused.text, word)
    assert.match(String(refused.headers['retry-after']), /^[1-9]\d*$/)
    const taken = await send(two, path)
    assert.equal(taken.status, free, `${path}: ${taken.text.slice(0, 300)}`)
  }
  socket.destroy()
  await untilHeld(0)
  assert.equal((await send(one, '/v2/models/sandbox/echo')).status, 200)
})

test('all callers together have a bound, and what unfinished bodies took comes back when they are gone', async () => {
  const [one, two, three] = tenants
  const unfinished = [await beginBody(one, '/api/v2/jobs'), await beginBody(two, '/api/v2/jobs', 1)]
  const large = JSON.stringify({ filling: 'x'.repeat(1000 * KIB) })
  const refused = await three.call('/api/v2/jobs', { method: 'POST', body: large })
  assert.equal(refused.status, 429)
  assert.match(refused.text, /the service holds/)
  for (const socket of unfinished) socket.destroy()
  await untilHeld(0)
  assert.equal((await three.call('/api/v2/jobs', { method: 'POST', body: large })).status, 422)
})

test('a body without a declared length counts as it comes', async () => {
  const [one, two] = tenants
  const socket = await beginBody(one, '/api/v2/jobs')
  const headers = { 'transfer-encoding': 'chunked' }
  assert.equal((await one.call('/api/v2/jobs', { method: 'POST', body: BODY, headers })).status, 429)
  assert.equal((await two.call('/api/v2/jobs', { method: 'POST', body: BODY, headers })).status, 422)
  socket.destroy()
  await untilHeld(0)
})

test('answers that are put into another form take room, too: who has their key comes again, and nobody else loses one', async () => {
  const patch = {
    http: { maxBodiesPerCallerBytes: 2 * KIB, maxBodiesBytes: 4 * KIB },
    router: { maxBodyBytes: 2 * KIB },
  }
  await using app = await startShared({}, { patch })
  const tenant = await app.account('one')
  const draw = (size: string, headers: Record<string, string> = {}) =>
    tenant.call('/v1/images/generations', {
      ...{ method: 'POST', headers },
      body: JSON.stringify({ model: 'sandbox/image', prompt: 'a fox', size }),
    })
  assert.equal((await draw('1024x1024')).status, 200)
  const refused = await draw('1024x1024', { 'idempotency-key': 'large' })
  assert.deepEqual([refused.status, refused.headers['retry-after'] !== undefined], [503, true], refused.text)
  for (let count = 0; count < 20; count++)
    assert.equal((await draw('16x16', { 'idempotency-key': `small ${count}` })).status, 200)
})
