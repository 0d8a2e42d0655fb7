/** The limits of an endpoint over two services on one database, started as a user starts them, and one of them killed. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'
import { type Answer, call } from '../../support/clients/call.ts'
import { countBy } from '../../support/cluster/share-cluster.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'

const ADMIN_TOKEN = 'admin-token-of-this-test'
const FILE = {
  '1': { class_type: 'EmptyImage', inputs: { width: 16, height: 16, batch_size: 1, color: 255 } },
  '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'limits' } },
}

describe('two services on one database', () => {
  const stack = new AsyncDisposableStack()
  let services: SpawnedServer[] = []
  let key = ''

  before(async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'atelier-limits-'))
    stack.defer(() => rmSync(folder, { recursive: true, force: true }))
    const { url } = stack.use(await createTestDatabase())
    // Without workers every run waits, so that what is in flight does not change by itself.
    const flags = ['--kind', 'cloud', '--data-dir', path.join(folder, 'data'), '--workers', '0']
    const env = { ATELIER_DATABASE: url, ATELIER_SECRET_KEY: 'ab'.repeat(32), ATELIER_ADMIN_TOKEN: ADMIN_TOKEN }
    services = await Promise.all([1, 2].map(async () => stack.use(await spawnServer(flags, env))))
    const admin = (at: string, body: object) =>
      call(services[0].url, `/admin/v1${at}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
        body: JSON.stringify(body),
      })
    await admin('/accounts', { id: 'owner', limits: { creditFloorMicros: null, requestsPerMinute: null } })
    key = (await admin('/accounts/owner/keys', {})).json.text
  })
  after(() => stack.disposeAsync())

  function ask(service: number, method: string, at: string, body?: object, headers: Record<string, string> = {}) {
    return call(services[service].url, `/api/v2/endpoints${at}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  }

  async function publish(name: string, limits: object): Promise<void> {
    const made = await ask(0, 'POST', '', { name, file: FILE, limits })
    assert.equal(made.status, 201, made.text)
  }
  const run = (service: number, name: string, headers: Record<string, string> = {}): Promise<Answer> =>
    ask(service, 'POST', `/${name}/runs`, { inputs: {} }, headers)
  const countRuns = async (name: string) => (await ask(1, 'GET', `/${name}/usage`)).json.total.runs
  const fifty = Array.from({ length: 50 }, (_, index) => index)

  test('take exactly as many of 50 calls at once as may be in flight, and one more for each that was canceled', async () => {
    await publish('flying', { in_flight: 7 })
    const answers = await Promise.all(fifty.map((index) => run(index % 2, 'flying')))
    assert.deepEqual(
      countBy(answers, ({ status, json }) => `${status} ${json.error?.code ?? ''}`),
      { '201 ': 7, '429 run_limit': 43 },
    )
    const accepted = answers.filter(({ status }) => status === 201)
    for (const { json } of accepted.slice(0, 3)) {
      const headers = { authorization: `Bearer ${key}` }
      assert.equal(
        (await call(services[1].url, `/api/v2/jobs/${json.id}/cancel`, { method: 'POST', headers })).status,
        200,
      )
    }
    const again = await Promise.all(fifty.map((index) => run(index % 2, 'flying')))
    assert.equal(again.filter(({ status }) => status === 201).length, 3)
    assert.deepEqual((await ask(0, 'GET', '/flying/usage')).json.limits.in_flight, { now: 7, maximum: 7 })
  })

  test('count a call once that both are sent with one key, and each item of a batch', async () => {
    await publish('counted', { runs: { day: 10 } })
    const answers = await Promise.all(
      fifty.map((index) => run(index % 2, 'counted', { 'idempotency-key': `call ${index % 5}` })),
    )
    assert.equal(answers.filter(({ status }) => status === 201).length, 5)
    const items = Array.from({ length: 3 }, () => ({}))
    const batches = await Promise.all(
      [0, 1, 0, 1].map((service) => ask(service, 'POST', '/counted/runs/batch', { items, mode: 'per_item' })),
    )
    assert.deepEqual(batches.map(({ status }) => status).sort(), [201, 201, 429, 429])
    assert.equal(await countRuns('counted'), 10)
  })

  test('stay exact when one of them is killed in the middle', async () => {
    await publish('killed', { in_flight: 20, runs: { month: 30 } })
    const first = fifty.map((index) =>
      run(index % 2, 'killed').then(
        ({ status }) => status,
        () => 'lost' as const,
      ),
    )
    await Promise.race(first)
    await services[0].killNow()
    const told = (await Promise.all(first)).filter((status) => status === 201).length
    const rest = await Promise.all(fifty.map(() => run(1, 'killed')))
    const accepted = told + rest.filter(({ status }) => status === 201).length
    // One whose answer was lost in the crash may have been taken, and then it counts.
    assert.ok(accepted <= 20, String(accepted))
    assert.equal(await countRuns('killed'), 20)
    assert.deepEqual((await ask(1, 'GET', '/killed/usage')).json.limits, {
      ...{ in_flight: { now: 20, maximum: 20 }, runs: { month: { now: 20, maximum: 30 } }, spend_usd: {} },
    })
  })
})
