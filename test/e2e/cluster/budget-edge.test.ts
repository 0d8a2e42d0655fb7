/** A budget at its edge, through two processes as a user starts them: of 50 calls at once as many run as it covers. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'
import { call } from '../../support/clients/call.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'
import {
  PAINTER,
  PAINTERS,
  type Painter,
  type PainterName,
  PRICES,
  startPainter,
  writePainters,
} from '../../support/providers/painters.ts'
import { waitUntil } from '../../support/wait-until.ts'

const ADMIN = 'admin-token-of-this-test'
const CALLS = 50
const COVERED = 7
// Nearly enough for one more.
const LIMIT = (COVERED + 1) * PRICES.north - 1
const GRANT = 100_000_000

describe('two services on one database', () => {
  const stack = new AsyncDisposableStack()
  let services: SpawnedServer[] = []
  let painters: Painter[] = []

  before(async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'atelier-edge-'))
    stack.defer(() => rmSync(folder, { recursive: true, force: true }))
    const database = stack.use(await createTestDatabase())
    painters = await Promise.all(PAINTERS.map((name) => startPainter(name, () => 'none')))
    for (const painter of painters) stack.use(painter)
    const addresses = Object.fromEntries(PAINTERS.map((name, index) => [name, painters[index]?.url ?? '']))
    const { catalog, providers } = await writePainters(folder, addresses as Record<PainterName, string>)
    const env = {
      ATELIER_ADMIN_TOKEN: ADMIN,
      ATELIER_DATABASE: database.url,
      ATELIER_PROVIDERS: providers,
      ATELIER_SECRET_KEY: 'ab'.repeat(32),
    }
    const flags = ['--kind', 'cloud', '--workers', '0', '--catalogs', catalog, '--data-dir', path.join(folder, 'data')]
    // The first brings the database up to date.
    for (const _ of ['first', 'second']) services = [...services, stack.use(await spawnServer(flags, env))]
  })
  after(() => stack.disposeAsync())

  const send = async (index: number, at: string, token: string, body?: object, key?: string) =>
    call(services[index % services.length]?.url ?? '', at, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })

  test('let through as many of 50 parallel calls as a budget covers, and charge exactly those', async () => {
    const limits = { requestsPerMinute: null, routerConcurrency: 1000, committedSpendMicros: null }
    assert.equal((await send(0, '/admin/v1/accounts', ADMIN, { id: 'payer', limits })).status, 201)
    assert.equal((await send(0, '/admin/v1/accounts/payer/grants', ADMIN, { micros: GRANT })).status, 201)
    const { text: key } = (await send(0, '/admin/v1/accounts/payer/keys', ADMIN, { name: 'edge' })).json as {
      text: string
    }
    // The other process hears of a new key a moment later.
    await waitUntil(async () => (await send(1, '/api/v2/budgets', key)).status === 200)
    const budget = { name: 'edge', subject: 'account', limit_usd: String(LIMIT / 1_000_000), period: 'month' }
    const { id } = (await send(1, '/api/v2/budgets', key, budget)).json as { id: string }
    const query = '?fallback_provider=false'
    const answers = await Promise.all(
      Array.from({ length: CALLS }, (_, index) =>
        send(index, `/v2/models/${PAINTER}${query}`, key, { prompt: `call ${index}` }, `call ${index}`),
      ),
    )
    const statuses = answers.map(({ status }) => status)
    assert.deepEqual([...new Set(statuses)].sort(), [200, 402])
    assert.equal(statuses.filter((status) => status === 200).length, COVERED)
    for (const { status, json } of answers)
      if (status === 402) assert.match((json as { detail: string }).detail, /edge/)
    assert.equal(painters[0]?.made.size, COVERED)
    const { spent_usd: spent } = (await send(0, `/api/v2/budgets/${id}`, key)).json as { spent_usd: string }
    assert.equal(Number(spent), (COVERED * PRICES.north) / 1_000_000)
    const { balance } = (await send(1, '/admin/v1/accounts/payer', ADMIN)).json as {
      balance: { available_micros: number; held_micros: number }
    }
    assert.deepEqual(balance, { ...balance, available_micros: GRANT - COVERED * PRICES.north, held_micros: 0 })
    assert.deepEqual((await send(0, '/admin/v1/ledger/check', ADMIN)).json.faults, [])
  })
})
