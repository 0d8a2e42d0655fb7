/** Event streams and sockets of one account at two processes, started as a user starts them: one limit holds over both. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'
import { call } from '../../support/clients/call.ts'
import { openEvents } from '../../support/clients/event-reader.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'
import { waitUntil } from '../../support/wait-until.ts'

const ADMIN_TOKEN = 'admin-token-of-this-test'
const LIMIT = 20
// A tenth may be opened without asking.
const MOST = 22
const WORKFLOW = {
  '1': { class_type: 'PrimitiveString', inputs: { value: 'x' } },
  '2': { class_type: 'PreviewAny', inputs: { source: ['1', 0] } },
}

describe('two services on one database', () => {
  const stack = new AsyncDisposableStack()
  let services: SpawnedServer[] = []
  let key = ''
  let job = ''

  before(async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'atelier-held-'))
    stack.defer(() => rmSync(folder, { recursive: true, force: true }))
    const { url } = stack.use(await createTestDatabase())
    const env = { ATELIER_DATABASE: url, ATELIER_SECRET_KEY: 'ab'.repeat(32), ATELIER_ADMIN_TOKEN: ADMIN_TOKEN }
    const flags = ['--kind', 'cloud', '--data-dir', path.join(folder, 'data'), '--workers', '0']
    services = await Promise.all([1, 2].map(async () => stack.use(await spawnServer(flags, env))))
    const admin = (at: string, body: object) =>
      call(services[0].url, `/admin/v1${at}`, {
        ...{ method: 'POST', headers: { authorization: `Bearer ${ADMIN_TOKEN}` }, body: JSON.stringify(body) },
      })
    const limits = { streams: LIMIT, requestsPerMinute: null, creditFloorMicros: null }
    assert.equal((await admin('/accounts', { id: 'acme', limits })).status, 201)
    key = (await admin('/accounts/acme/keys', {})).json.text
    const headers = { authorization: `Bearer ${key}` }
    await waitUntil(async () => (await call(services[1].url, '/api/v2/jobs', { headers })).status === 200)
    const body = JSON.stringify({ workflow: WORKFLOW })
    job = (await call(services[0].url, '/api/v2/jobs', { method: 'POST', headers, body })).json.id
  })
  after(() => stack.disposeAsync())

  interface Held {
    readonly at: number
    close(): void
  }

  async function openStream(at: number): Promise<Held | null> {
    const reader = openEvents(services[at].url, `/api/v2/jobs/${job}/events`, { Authorization: `Bearer ${key}` })
    const head = await reader.head
    if (head.startsWith('HTTP/1.1 200 ')) return { at, close: () => reader.socket.destroy() }
    assert.match(head, /^HTTP\/1.1 429 /)
    reader.socket.destroy()
    return null
  }

  function openWebSocket(at: number): Promise<Held | null> {
    const socket = new WebSocket(`${services[at].url.replace('http', 'ws')}/ws?token=${key}`)
    return new Promise((resolve, reject) => {
      socket.on('open', () => resolve({ at, close: () => socket.terminate() }))
      socket.on('unexpected-response', (request, response) => {
        request.destroy()
        if (response.statusCode === 429) resolve(null)
        else reject(new Error(`answered ${response.statusCode}`))
      })
      socket.on('error', () => {})
    })
  }

  const open = (place: number) => (place % 2 === 0 ? openStream : openWebSocket)(Math.floor(place / 2) % 2)
  const isOpen = (held: Held | null) => held !== null

  test('an account holds as many streams and sockets at two processes together as at one, and a process that ends makes room', async () => {
    const atOnce = (await Promise.all(Array.from({ length: 3 * LIMIT }, (_, place) => open(place)))).filter(isOpen)
    assert.ok(atOnce.length <= MOST, `${atOnce.length} were opened at once`)
    const held = [...atOnce]
    for (let place = 0; place < 4 * LIMIT; place++) {
      const next = await open(place)
      if (next !== null) held.push(next)
    }
    assert.ok(held.length >= LIMIT && held.length <= MOST, `${held.length} are open`)
    const before = held.filter(({ at }) => at === 0).length
    await services[1].terminate()
    let again = before
    await waitUntil(async () => {
      if ((await openStream(0)) !== null) again += 1
      return again >= LIMIT
    })
    assert.equal(await openStream(0), null)
    for (const each of held) each.close()
  })
})
