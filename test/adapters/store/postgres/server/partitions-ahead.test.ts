/** Ranges of expiry: made before the first job needs them, and where one is missing, nobody waits for anything else because of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createStoreChores } from '../../../../../src/compose/storage/open-store.ts'
import { Tenant } from '../../../../contracts/store-under-test.ts'
import { createFixedClock } from '../../../../support/fixed-clock.ts'
import { withTwoNodes } from '../temporary-store.ts'

const DAY_MS = 86_400_000

test('a chore makes the ranges of the next days; whoever submits then waits for nobody', () =>
  withTwoNodes(async ({ stores: [store, other], query }) => {
    const clock = createFixedClock()
    const prepare = createStoreChores(store.upkeep, { clock, retentionMs: 7 * DAY_MS }).find(
      ({ name }) => name === 'prepare-expiries',
    )
    await prepare?.run(AbortSignal.timeout(60_000))
    const ranges = () => query('SELECT count(*)::int FROM job_partition')
    assert.deepEqual(await ranges(), [[3]])
    await prepare?.run(AbortSignal.timeout(60_000))
    assert.deepEqual(await ranges(), [[3]])
    // Somebody is about to make or drop ranges, for as long as this test lasts.
    await query('SELECT pg_advisory_lock(7267301)')
    const tenant = await Tenant.create(other)
    for (const days of [7, 8, 9]) {
      const expiresAt = new Date(clock.now().getTime() + days * DAY_MS)
      assert.equal((await tenant.submit({ expiresAt })).status, 'queued')
    }
  }))

test('a submit whose range is missing waits for no chore and for no reader of ended jobs', () =>
  withTwoNodes(async ({ stores: [store], query }) => {
    const tenant = await Tenant.create(store)
    await query('BEGIN')
    await query('LOCK TABLE ledger_entry IN ACCESS EXCLUSIVE MODE')
    await query('SELECT count(*) FROM job_done')
    let isOver = false
    const check = store.ledger.check().finally(() => {
      isOver = true
    })
    check.catch(() => {})
    const { id } = await tenant.submit({ expiresAt: new Date(Date.now() + 40 * DAY_MS) })
    assert.equal(isOver, false, 'the chore waits until the transaction ends')
    await query('ROLLBACK')
    await check
    const claim = await tenant.claim()
    assert.equal(claim?.job.id, id)
    assert.equal((await tenant.succeed({ jobId: id, leaseId: claim?.leaseId ?? '' })).outcome, 'committed')
    // A range is like one that was made with its parents: every index of theirs has its part in it.
    const unattached = await query(
      `SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_inherits t ON t.inhrelid = i.indrelid
       WHERE NOT EXISTS (SELECT 1 FROM pg_inherits p WHERE p.inhrelid = i.indexrelid)`,
    )
    assert.deepEqual(unattached, [])
  }))
