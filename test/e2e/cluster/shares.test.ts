/** A link over several processes: its bounds hold exactly whoever is asked, and a revoked one leads nowhere from that moment on. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'
import { type Answer, call } from '../../support/clients/call.ts'
import { countBy } from '../../support/cluster/share-cluster.ts'
import { card } from '../../support/endpoints/card.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'
import { waitUntil } from '../../support/wait-until.ts'

const ADMIN_TOKEN = 'admin-token-of-this-test'
const PRICES = { pools: { '*': { perSecondMicros: 1, minimumMicros: 700, holdMicros: 1000 } } }

describe('a link over two processes', () => {
  const stack = new AsyncDisposableStack()
  let services: SpawnedServer[] = []
  let key = ''
  before(async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'atelier-links-'))
    stack.defer(() => rmSync(folder, { recursive: true, force: true }))
    const { url } = stack.use(await createTestDatabase())
    const prices = path.join(folder, 'prices.json')
    writeFileSync(prices, JSON.stringify(PRICES))
    const data = path.join(folder, 'data')
    const flags = ['--kind', 'cloud', '--data-dir', data, '--workers', '2', '--prices', prices]
    const env = { ATELIER_DATABASE: url, ATELIER_SECRET_KEY: 'ab'.repeat(32), ATELIER_ADMIN_TOKEN: ADMIN_TOKEN }
    // Each visitor has an address of his own, as a proxy reports it.
    const proxied = [...flags, '--trusted-proxies', '127.0.0.0/8']
    services = await Promise.all([1, 2].map(async () => stack.use(await spawnServer(proxied, env))))
    const limits = { requestsPerMinute: null, queuedJobs: 1000, creditFloorMicros: 0 }
    assert.equal((await admin('/accounts', { id: 'acme', limits })).status, 201)
    assert.equal((await admin('/accounts/acme/grants', { micros: 9_000_000, id: 'start' })).status, 201)
    key = (await admin('/accounts/acme/keys', {})).json.text
    const file = { name: 'card', file: card('Hello') }
    await waitUntil(async () => [200, 201].includes((await owner(1, 'POST', '', file)).status))
  })
  after(() => stack.disposeAsync())

  const admin = (at: string, body: object) =>
    call(services[0].url, `/admin/v1${at}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
      body: JSON.stringify(body),
    })
  const owner = (at: number, method: string, rest: string, body?: object): Promise<Answer> =>
    call(services[at].url, `/api/v2/endpoints${rest}`, {
      method,
      headers: { authorization: `Bearer ${key}` },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  async function share(wish: object) {
    const expires = new Date(Date.now() + 3_600_000).toISOString()
    const body = { runs: 1000, at_a_time: 100, spend_usd: '5', expires_at: expires, ...wish }
    const { status, json, text } = await owner(0, 'POST', '/card/shares', body)
    assert.equal(status, 201, text)
    return { id: json.id as string, path: new URL(json.url).pathname }
  }
  const startMany = (link: string, count: number) =>
    Promise.all(
      Array.from({ length: count }, async (_, visitor) => {
        const headers = { 'x-forwarded-for': `203.0.113.${visitor}` }
        const body = JSON.stringify({ inputs: {} })
        const { status, json } = await call(services[visitor % 2].url, `${link}/runs`, {
          method: 'POST',
          headers,
          body,
        })
        return status === 201 ? 'began' : String(json.error.code)
      }),
    )
  const useOf = async (id: string) =>
    (await owner(1, 'GET', '/card/shares')).json.shares.find((each: { id: string }) => each.id === id).used

  test('takes exactly as many runs as it is good for, from many visitors at once', async () => {
    const { path: link, id } = await share({ runs: 5 })
    const outcomes = await startMany(link, 40)
    assert.deepEqual(countBy(outcomes, String), { began: 5, run_limit: 35 })
    assert.equal((await useOf(id)).runs, 5)
  })

  test('spends no more than it may, and what a run did not need is there again', async () => {
    const { path: link, id } = await share({ spend_usd: '0.0031' })
    const outcomes = await startMany(link, 20)
    assert.deepEqual(countBy(outcomes, String), { began: 3, spend_limit: 17 })
    await waitUntil(async () => (await useOf(id)).running === 0)
    assert.equal((await useOf(id)).spent_usd, '0.0021')
    // A thousandth is left, and as much is held for a run.
    assert.deepEqual(countBy(await startMany(link, 4), String), { began: 1, spend_limit: 3 })
    const refused = await owner(0, 'POST', '/card/shares', {
      runs: 1,
      expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    })
    assert.deepEqual([refused.status, refused.json.error.details?.field ?? null], [422, 'spend_usd'])
  })

  test('takes as many at a time as it may', async () => {
    const { path: link } = await share({ at_a_time: 2 })
    const outcomes = await startMany(link, 12)
    const { began = 0, run_limit: refused = 0 } = countBy(outcomes, String)
    assert.ok(began >= 2 && began + refused === 12, JSON.stringify(outcomes))
  })

  test('leads nowhere in the other process once the revocation was answered', async () => {
    for (let round = 0; round < 20; round++) {
      const { path: link, id } = await share({})
      const ask = () => call(services[1].url, `${link}/endpoint`)
      assert.equal((await ask()).status, 200)
      assert.equal((await owner(0, 'DELETE', `/card/shares/${id}`)).status, 200)
      assert.equal((await ask()).status, 404)
    }
  })
})
