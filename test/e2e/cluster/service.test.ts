/** Three services on one database, started as a user starts them: to their clients they are one. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Client } from 'pg'
import { createClient } from '../../../lib/postgres/driver.ts'
import { openPostgresStore } from '../../../src/adapters/store/postgres/open-postgres-store.ts'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'
import { type Answer, call } from '../../support/clients/call.ts'
import { countBy } from '../../support/cluster/share-cluster.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'
import { waitUntil } from '../../support/wait-until.ts'

const ADMIN_TOKEN = 'admin-token-of-this-test'
const PRICES = { pools: { '*': { perSecondMicros: 1, minimumMicros: 700, holdMicros: 1000 } } }
const WORKFLOW = {
  '1': { class_type: 'EmptyImage', inputs: { width: 16, height: 16, batch_size: 1, color: 255 } },
  '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'cluster' } },
}

describe('three services on one database', () => {
  const stack = new AsyncDisposableStack()
  let services: SpawnedServer[] = []
  let databaseUrl = ''
  let database: Client

  before(async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'atelier-cluster-'))
    stack.defer(() => rmSync(folder, { recursive: true, force: true }))
    const { url } = stack.use(await createTestDatabase())
    databaseUrl = url
    database = createClient({ url })
    await database.connect()
    stack.defer(() => database.end())
    const prices = path.join(folder, 'prices.json')
    writeFileSync(prices, JSON.stringify(PRICES))
    const flags = ['--kind', 'cloud', '--data-dir', path.join(folder, 'data'), '--workers', '2', '--prices', prices]
    const env = {
      ATELIER_DATABASE: url,
      ATELIER_SECRET_KEY: 'ab'.repeat(32),
      ATELIER_ADMIN_TOKEN: ADMIN_TOKEN,
    }
    services = await Promise.all([1, 2, 3].map(async () => stack.use(await spawnServer(flags, env))))
  })
  after(() => stack.disposeAsync())

  function admin(service: number, method: string, at: string, body: object = {}): Promise<Answer> {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
    return call(services[service].url, `/admin/v1${at}`, { method, headers, body: JSON.stringify(body) })
  }

  function ask(service: number, key: string, at: string, options: Parameters<typeof call>[2] = {}): Promise<Answer> {
    const headers = { authorization: `Bearer ${key}`, ...options.headers }
    return call(services[service % services.length].url, at, { ...options, headers })
  }

  function submit(service: number, key: string, headers: Record<string, string> = {}): Promise<Answer> {
    return ask(service, key, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow: WORKFLOW }), headers })
  }

  /** An account made through one of them, with a key that all of them know by now. */
  async function addAccount(
    limits: object,
  ): Promise<{ readonly id: string; readonly key: string; readonly keyId: string }> {
    const id = `account-${randomUUID()}`
    const made = await admin(0, 'POST', '/accounts', { id, limits: { requestsPerMinute: null, ...limits } })
    assert.equal(made.status, 201, made.text)
    const { text: key, id: keyId } = (await admin(0, 'POST', `/accounts/${id}/keys`)).json
    for (const service of [0, 1, 2])
      await waitUntil(async () => (await ask(service, key, '/api/v2/jobs')).status === 200)
    return { id, key, keyId }
  }

  async function countHeld(accountId: string): Promise<number> {
    const held = `SELECT 1 FROM job WHERE account_id = $1 AND status IN ('running', 'canceling')`
    return (await database.query(held, [accountId])).rowCount ?? 0
  }

  test("run each other's jobs, within the limit and the credit of the account, and charge each once", async () => {
    const { id, key } = await addAccount({ concurrentJobs: 2, creditFloorMicros: 0 })
    await admin(1, 'POST', `/accounts/${id}/grants`, { micros: 10_000, memo: 'a gift' })
    const answers = await Promise.all(Array.from({ length: 24 }, (_, index) => submit(index, key)))
    // Jobs that end while others are submitted give back what they did not use: never less than ten fit, and never more than can be paid.
    const counts = countBy(answers, ({ status }) => `${status}`)
    assert.ok(
      counts['201'] >= 10 && counts['201'] <= 13 && counts['201'] + counts['402'] === 24,
      JSON.stringify(counts),
    )
    const jobIds = answers.filter(({ status }) => status === 201).map(({ json }) => json.id as string)
    for (const [index, jobId] of jobIds.entries()) {
      await waitUntil(async () => {
        assert.ok((await countHeld(id)) <= 2, 'more at once than the limit')
        return (await ask(index + 1, key, `/api/v2/jobs/${jobId}`)).json.status === 'succeeded'
      })
    }
    await using store = await openPostgresStore({ url: databaseUrl, migrates: false })
    assert.deepEqual(await store.ledger.balance(id), { available: 10_000 - 700 * jobIds.length, held: 0, floor: 0 })
    assert.deepEqual((await store.ledger.check()).faults, [])
    assert.deepEqual(await store.accounts.findUse(id), { running: 0, queued: 0 })
  })

  test('take a key once', async () => {
    const { key } = await addAccount({ creditFloorMicros: null })
    const answers = await Promise.all(
      Array.from({ length: 9 }, (_, index) => submit(index, key, { 'idempotency-key': 'the same' })),
    )
    assert.deepEqual(
      countBy(answers, ({ status }) => `${status}`),
      { 201: 1, 422: 8 },
    )
  })

  test('refuse a key everywhere once it is revoked through one', async () => {
    const { key, keyId } = await addAccount({ creditFloorMicros: null })
    const revoked = await admin(2, 'POST', `/keys/${keyId}/revoke`)
    assert.ok(revoked.status < 300, revoked.text)
    for (const service of [0, 1, 2])
      await waitUntil(async () => (await ask(service, key, '/api/v2/jobs')).status === 401)
  })
})
