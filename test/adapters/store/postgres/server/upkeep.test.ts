/** What the service does for its tables beside the server's own autovacuum, and what it tells of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { systemClock } from '../../../../../lib/clock.ts'
import { addStoreGauges } from '../../../../../src/compose/metrics/open-metrics.ts'
import { createStoreChores } from '../../../../../src/compose/storage/open-store.ts'
import { Tenant } from '../../../../contracts/store-under-test.ts'
import { withTwoNodes } from '../temporary-store.ts'

const REMOVED = 1500
const CHORES = { clock: systemClock, retentionMs: 86_400_000 }

test('the room of removed rows is reclaimed where there are many, and nowhere else', () =>
  withTwoNodes(async ({ stores: [store], query }) => {
    const [reclaim] = createStoreChores(store.upkeep, CHORES)
    const run = () => reclaim?.run(AbortSignal.timeout(60_000))
    await query('ALTER TABLE account_load SET (autovacuum_enabled = false)')
    await query('ALTER TABLE account SET (autovacuum_enabled = false)')
    await query(
      `INSERT INTO account_load (account_id, max_running) SELECT 'gone-' || i, 1 FROM generate_series(1, $1::int) AS i`,
      [REMOVED],
    )
    await query(`DELETE FROM account_load WHERE account_id LIKE 'gone-%'`)
    await query('SELECT pg_stat_force_next_flush()')
    assert.equal((await store.upkeep?.health())?.deadRows['account_load'], REMOVED)
    assert.deepEqual(await run(), ['account_load'])
    assert.equal((await store.upkeep?.health())?.deadRows['account_load'], 0)
    assert.deepEqual(await run(), [])
  }))

test('statistics of partitioned parents are renewed, which the server never does by itself', () =>
  withTwoNodes(async ({ stores: [store], query }) => {
    const [, renew] = createStoreChores(store.upkeep, CHORES)
    const tenant = await Tenant.create(store)
    await tenant.submit()
    const known = `SELECT count(*)::int FROM pg_stats WHERE tablename = 'job_text'`
    assert.deepEqual(await query(known), [[0]])
    await renew?.run(AbortSignal.timeout(60_000))
    const [[columns]] = (await query(known)) as [[number]]
    assert.ok(columns > 0)
  }))

test('metrics tell of removed rows, of the oldest transaction and of how far partitions reach', () =>
  withTwoNodes(async ({ stores: [store] }) => {
    const tenant = await Tenant.create(store)
    await tenant.submit({ expiresAt: new Date(Date.now() + 86_400_000) })
    const registry = new Registry()
    addStoreGauges(registry, store.upkeep?.health ?? null)
    const text = await registry.metrics()
    for (const table of ['account', 'account_load', 'job']) {
      assert.match(text, new RegExp(`^atelier_store_dead_tuples\\{table="${table}"\\} \\d+$`, 'm'))
    }
    assert.match(text, /^atelier_store_oldest_xmin_age \d+$/m)
    const [, lead] = /^atelier_store_partition_lead_seconds (\d+)$/m.exec(text) ?? []
    assert.ok(Number(lead) >= 86_000)
  }))
