/**
 * No operation of a job's life walks a table. Plans are made once per connection and kept, so the tables are empty and analyzed when
 * they are made: the moment at which walking them looks cheapest, and would be remembered while they grow.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { at, keyClaim, LOST, newOutput, START, Tenant } from '../../../../contracts/store-under-test.ts'
import { withTwoNodes } from '../temporary-store.ts'

const SESSIONS = `SELECT count(*)::int FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = 'atelier'`
const WALKED = `SELECT relname, seq_scan::int FROM pg_stat_user_tables
  WHERE seq_scan > 0 AND relname ~ '^(job|output|asset|account|ledger|credit|idempotency|blob)' AND relname <> 'job_partition'
  ORDER BY relname`

test('no operation of the life of a job walks a table', () =>
  withTwoNodes(async ({ stores, query }) => {
    // A session tells its figures when it ends.
    const end = async (store: AsyncDisposable) => {
      await store[Symbol.asyncDispose]()
      while ((await query(SESSIONS))[0]?.[0] !== 0) await nextTurn()
    }
    // The first job makes the partitions, whose emptiness is then known.
    const { accountId, pool } = await Tenant.metered(stores[1], { maxRunning: 10 })
    const early = await new Tenant(stores[1], accountId, pool).submit()
    await stores[1].jobs.cancel(accountId, early.id, START)
    await end(stores[1])
    await query('DELETE FROM job_done')
    await query('DELETE FROM job_text')
    await query('VACUUM ANALYZE')
    await query('SELECT pg_stat_force_next_flush()')
    await query('SELECT pg_stat_reset()')
    const { jobs } = stores[0]
    const tenant = new Tenant(stores[0], accountId, pool)
    const price = { perSecondMicros: 1, minimumMicros: 1, holdMicros: 10 }
    const secrets = { needsExtraData: true, sealedExtraData: new Uint8Array([1]), notes: '{}' }
    const inputs = [{ name: 'a', hash: 'a'.repeat(64), sizeBytes: 1, contentType: 'image/png' }]
    const submit = (needs: string) =>
      tenant.submit({ ...secrets, price, inputs, needs, metadata: { a: 'b' } }, keyClaim(randomUUID()))
    const lanes = [{ engineId: 'one', lanes: [{ lane: 'a', rank: 0 as const }] }]
    for (const options of [{}, { engines: lanes }]) {
      await submit('a')
      await submit('a')
      const [first, second] = [await tenant.claim(options), await tenant.claim(options)]
      const lease = { jobId: first?.job.id ?? '', leaseId: first?.leaseId ?? '' }
      const other = { jobId: second?.job.id ?? '', leaseId: second?.leaseId ?? '' }
      await jobs.renew([lease], at(30_000))
      await jobs.commit(lease, { outputsReused: true })
      const log = { text: 'x', truncated: false, capturedAt: START, complete: true }
      await jobs.commit(lease, { outputs: [newOutput()], log })
      await tenant.find(lease.jobId)
      await jobs.commit(lease, {
        outputs: [newOutput()],
        finish: { status: 'succeeded', from: ['running'], at: at(1), error: null },
      })
      await jobs.commit(other, { outputs: [newOutput()] })
      await jobs.release([other], at(1))
      const again = await tenant.claim(options)
      await jobs.reap({ now: at(60_000), maxAttempts: 3, error: LOST })
      await jobs.cancel(tenant.accountId, again?.job.id ?? '', at(2))
      await tenant.find(lease.jobId)
      await jobs.list(tenant.accountId, { statuses: null, metadata: {}, limit: 10, after: null, now: START })
    }
    await end(stores[0])
    assert.deepEqual(await query(WALKED), [])
  }))
