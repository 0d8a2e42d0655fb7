/** Limits hold at every instant, counters equal rows at the end, and a process that is killed in between changes nothing of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openSqliteStore } from '../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { killAndCheckLimits, withFolder } from './kill-limits.ts'
import { LIMITS, prepareAccounts, runLoad } from './limit-load.ts'

test('50 claimers and 200 submitters never exceed limits of 1, 3 and 5, and use them fully', () =>
  withFolder(async (directory) => {
    await using store = await openSqliteStore({ directory, synchronous: 'NORMAL' })
    await prepareAccounts(store)
    const watch = await runLoad(store, { submitters: 200, claimers: 50, each: 5 })
    assert.deepEqual(Object.fromEntries(watch.most), LIMITS)
    const { queued, running, canceling, succeeded, failed } = await store.jobs.countByStatus()
    assert.deepEqual([queued, running, canceling, succeeded + failed], [0, 0, 0, 1000])
    assert.equal(await store.accounts.repairCounters(), 0)
    const { faults, openHolds } = await store.ledger.check()
    assert.deepEqual([faults, openHolds], [[], 0])
  }))

test('the same with a kill in between, again and again', () => killAndCheckLimits({ kills: 5, seed: 20_261_115 }))
