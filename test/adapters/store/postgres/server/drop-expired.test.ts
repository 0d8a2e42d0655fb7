/**
 * Ended jobs leave by whole ranges of their expiry: what they counted for is given back, whatever happens in between, and the space
 * that they took is free again.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Client } from 'pg'
import { silentLog } from '../../../../../lib/log.ts'
import { createClient } from '../../../../../lib/postgres/driver.ts'
import { type Connected, openConnections } from '../../../../../src/adapters/store/postgres/database/connections.ts'
import { openPostgresStore } from '../../../../../src/adapters/store/postgres/open-postgres-store.ts'
import { dropExpired } from '../../../../../src/adapters/store/postgres/operations/jobs/drop-expired.ts'
import type { Store } from '../../../../../src/domain/store.ts'
import { at, hashOf, newJobId, newOutput, Tenant } from '../../../../contracts/store-under-test.ts'
import { createTestDatabase } from '../../../../support/postgres/test-database.ts'
import { waitUntil } from '../../../../support/wait-until.ts'

const RANGE_MS = 1000

interface Opened {
  readonly store: Store
  readonly sql: Client
  readonly url: string
}

async function withStore(body: (opened: Opened) => Promise<void>): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const { url } = stack.use(await createTestDatabase())
  const store = stack.use(await openPostgresStore({ url, migrates: false, partitionMs: RANGE_MS }))
  const sql = createClient({ url })
  await sql.connect()
  stack.defer(() => sql.end())
  await body({ store, url, sql })
  assert.equal(await store.accounts.repairCounters(), 0)
}

async function readRanges(sql: Client): Promise<number> {
  const { rows } = await sql.query<{ n: string }>(
    `SELECT count(*) AS n FROM pg_inherits JOIN pg_class ON pg_class.oid = inhparent WHERE relname = 'job_done'`,
  )
  return Number(rows[0].n)
}

/**
 * A VACUUM keeps what some snapshot of the database could still see, such as that of the server's own ANALYZE, which it begins
 * whenever it likes. This waits until nobody has a snapshot from before the call.
 */
async function waitForOlderSnapshots(sql: Client): Promise<void> {
  const { rows } = await sql.query<{ xid: string }>('SELECT pg_current_xact_id()::xid::text AS xid')
  const older = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
                 AND age(backend_xmin) > age($1::xid)`
  await waitUntil(async () => (await sql.query(older, [rows[0].xid])).rowCount === 0)
}

/** How many rows each table has, for example `{"account": 1, "job": 20}`. Candidates are the collector's, which does not run here. */
async function countRows(sql: Client): Promise<string> {
  const tables = await sql.query<{ name: string }>(
    `SELECT oid::regclass::text AS name FROM pg_class
     WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace AND relname <> 'blob_candidate'
     ORDER BY 1`,
  )
  const counts: Record<string, number> = {}
  for (const { name } of tables.rows) {
    const { rows } = await sql.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${name}`)
    if (rows[0].n > 0) counts[name] = rows[0].n
  }
  return JSON.stringify(counts)
}

/** In the range that begins so many milliseconds after the start. */
const inRange = (fromMs: number) => ({ createdAt: at(0), expiresAt: at(fromMs + 500) })
const dropAt = (ms: number, graceMs = 0) => ({ now: at(ms), expiredBefore: at(ms - graceMs), limit: 1000 })

describe('whole ranges of ended jobs', () => {
  test('leave with everything that belongs to them, and nothing else does', () =>
    withStore(async ({ store, sql }) => {
      const tenant = await Tenant.create(store)
      const [own, shared] = [newOutput({ hash: hashOf('own') }), newOutput({ hash: hashOf('shared') })]
      const { job: old, lease } = await tenant.run({ ...inRange(1000), metadata: { a: 'b' } })
      await store.jobs.commit(lease, { outputs: [own, shared] })
      await tenant.succeed(lease)
      const chosen = newJobId()
      await tenant.submit({ ...inRange(1000), id: chosen, hasChosenId: true })
      await store.jobs.cancel(tenant.accountId, chosen, at(0))
      const { job: young, lease: longer } = await tenant.run(inRange(2000))
      await store.jobs.commit(longer, { outputs: [newOutput({ hash: shared.hash })] })
      await tenant.succeed(longer)
      assert.equal(await readRanges(sql), 2)

      assert.equal(await store.jobs.dropExpired?.(dropAt(1999)), 0)
      assert.equal(await readRanges(sql), 2)
      assert.equal(await store.jobs.dropExpired?.(dropAt(2000)), 2)
      assert.equal(await readRanges(sql), 1)
      assert.equal(await tenant.find(old.id), null)
      assert.equal(await store.jobs.findWorkflow(tenant.accountId, old.id, at(0)), null)
      assert.equal(await store.assets.find(tenant.accountId, own.assetId, at(0)), null)
      assert.equal((await tenant.find(young.id))?.outputs.length, 1)
      assert.deepEqual(await store.assets.retireBlobs(at(2001), 10), [own.hash])
      const counts = await store.jobs.countByStatus()
      assert.deepEqual([counts.succeeded, counts.canceled], [1, 0])
      const { rows } = await sql.query('SELECT bytes FROM account_storage')
      assert.deepEqual(rows, [{ bytes: String(shared.sizeBytes) }])
      // The id that its owner had chosen may be chosen again, also in the range that is gone.
      await tenant.submit({ ...inRange(1000), id: chosen, hasChosenId: true })
    }))

  test('stay while a job in them lives, and while one that expired may still be seen', () =>
    withStore(async ({ store, sql }) => {
      const tenant = await Tenant.create(store)
      const job = await tenant.submit(inRange(1000))
      assert.equal(await store.jobs.dropExpired?.(dropAt(5000)), 0)
      await store.jobs.expire(at(5000), 10)
      assert.equal(await store.jobs.dropExpired?.(dropAt(5900, 1000)), 0)
      assert.equal((await tenant.find(job.id, at(5900)))?.status, 'expired')
      assert.equal(await store.jobs.dropExpired?.(dropAt(6000, 1000)), 1)
      assert.equal(await tenant.find(job.id, at(6000)), null)
      assert.equal(await readRanges(sql), 0)
    }))

  test('are counted off once, however often the process that does it dies', () =>
    withStore(async ({ store, url, sql }) => {
      const tenant = await Tenant.create(store)
      for (let count = 0; count < 5; count += 1) {
        const { lease } = await tenant.run(inRange(1000))
        await store.jobs.commit(lease, { outputs: [newOutput({ hash: hashOf(`${count}`) })] })
        await tenant.succeed(lease)
      }
      await using connections = openConnections({ url, log: silentLog })
      const { chore } = connections
      for (let survived = 0; survived < 4; survived += 1) {
        let left = survived
        const dying: Connected = {
          ...chore,
          transaction: (body, options) =>
            chore.transaction(async (tx) => {
              const result = await body(tx)
              left -= 1
              if (left < 0) throw new Error('the process dies before its commit')
              return result
            }, options),
        }
        const input = { now: at(2000).getTime(), expiredBefore: at(2000).getTime(), limit: 1000 }
        await dropExpired(dying, input).catch(() => {})
        assert.equal(await store.accounts.repairCounters(), 0)
      }
      assert.equal(await readRanges(sql), 0)
      const { rows } = await sql.query(
        'SELECT coalesce(sum(bytes), 0)::int AS bytes, (SELECT count(*)::int FROM account_blob) AS blobs FROM account_storage',
      )
      assert.deepEqual(rows, [{ bytes: 0, blobs: 0 }])
    }))

  test('are made anew by a process that did not know that they were dropped', () =>
    withStore(async ({ store, url }) => {
      const tenant = await Tenant.create(store)
      const job = await tenant.submit(inRange(1000))
      await store.jobs.cancel(tenant.accountId, job.id, at(0))
      await using other = await openPostgresStore({ url, migrates: false, partitionMs: RANGE_MS })
      assert.equal(await other.jobs.dropExpired?.(dropAt(3000)), 1)
      const again = await tenant.submit(inRange(1000))
      await store.jobs.cancel(tenant.accountId, again.id, at(0))
      assert.equal((await tenant.find(again.id))?.status, 'canceled')
    }))
})

const VACUUMED = ['job', 'account', 'account_load', 'account_blob', 'account_storage', 'blob_candidate']

test('jobs that come and go leave no space behind', () =>
  withStore(async ({ store, sql }) => {
    const tenant = await Tenant.create(store, { maxQueued: 10_000 })
    const workflow = JSON.stringify({
      1: { class_type: 'Nothing', inputs: { text: 'a graph of some length '.repeat(40) } },
    })
    // The server's own statistics, collected at the moment of a VACUUM, would keep that from removing rows.
    for (const table of VACUUMED) await sql.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`)
    const sizes: number[] = []
    const rowsLeft: string[] = []
    for (let round = 1; round <= 6; round += 1) {
      const fields = { ...inRange(round * RANGE_MS), workflow, metadata: { round: `${round}` } }
      const jobs = await Promise.all(Array.from({ length: 1000 }, () => tenant.submit(fields)))
      for (let index = 0; index < 20; index += 1) {
        const claim = await tenant.claim()
        if (claim === null) break
        const lease = { jobId: claim.job.id, leaseId: claim.leaseId }
        await store.jobs.commit(lease, { outputs: [newOutput({ hash: hashOf(claim.job.id) })] })
        await tenant.succeed(lease)
      }
      await store.jobs.expire(at((round + 1) * RANGE_MS), 1000)
      assert.equal(await store.jobs.dropExpired?.({ ...dropAt((round + 1) * RANGE_MS), limit: 10_000 }), jobs.length)
      await waitForOlderSnapshots(sql)
      // As the server does by itself when there is enough to do.
      for (const table of VACUUMED) {
        // With its indexes, which the server leaves alone as long as little is dead in them.
        await sql.query(`VACUUM (INDEX_CLEANUP ON) ${table}`)
      }
      const { rows } = await sql.query<{ bytes: string }>(
        `SELECT sum(pg_total_relation_size(oid)) AS bytes FROM pg_class
         WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace AND relname <> 'blob_candidate'`,
      )
      sizes.push(Number(rows[0].bytes))
      rowsLeft.push(await countRows(sql))
    }
    // The first round makes what every later one finds.
    const [, settled, ...afterwards] = rowsLeft
    for (const counts of afterwards) assert.equal(counts, settled)
    // How many pages a round needs depends on how many submits meet; jobs that stayed would have added 5 MB by now.
    const [, filled = 0, ...later] = sizes
    for (const size of later) assert.ok(size <= filled * 1.5, `${sizes.join(', ')} bytes`)
    assert.equal(await readRanges(sql), 0)
  }))
