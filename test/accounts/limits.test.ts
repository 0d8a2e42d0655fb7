/** Limits hold at every instant, counters equal rows at the end, and a process that is killed in between changes nothing of it. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { storeFiles } from '../../src/adapters/store/sqlite/data-directory.ts'
import { openSqliteStore } from '../../src/adapters/store/sqlite/open-store.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { LIMITS, prepareAccounts, runLoad } from './limit-load.ts'

const SCRIPT = fileURLToPath(new URL('./limit-load.ts', import.meta.url))

async function withFolder(body: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'atelier-limits-'))
  try {
    await body(directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** From outside and without the operations that keep the counters. */
function countHeld(directory: string): Record<string, { counted: number; stored: number }> {
  const database = new DatabaseSync(storeFiles(directory).database, { readOnly: true })
  try {
    const held = database.prepare(
      `SELECT account.id, account.running AS stored, count(job.seq) AS counted FROM account
       LEFT JOIN job ON job.account_id = account.id AND job.status IN ('running', 'canceling') GROUP BY account.id`,
    )
    const rows = held.all().map(({ id, counted, stored }) => [id, { counted: Number(counted), stored: Number(stored) }])
    return Object.fromEntries(rows)
  } finally {
    database.close()
  }
}

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

async function workAndKill(directory: string, afterMs: number): Promise<void> {
  const child = spawn(process.execPath, [SCRIPT, directory], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const [said] = await Promise.race([once(child.stdout, 'data'), exited])
  assert.equal(String(said).trim(), 'ready')
  await delay(afterMs)
  assert.equal(child.exitCode, null, 'the load broke by itself')
  child.kill('SIGKILL')
  await exited
}

test('the same with a kill in between, again and again', () =>
  withFolder(async (directory) => {
    const random = seededRandom(20_261_115)
    for (let kill = 0; kill < 5; kill++) {
      await workAndKill(directory, random.between(20, 400))
      for (const [id, { counted, stored }] of Object.entries(countHeld(directory))) {
        assert.ok(counted <= LIMITS[id], `${counted} jobs of ${id} were left running`)
        assert.equal(stored, counted, `the counter of ${id}`)
      }
    }
    await using store = await openSqliteStore({ directory })
    assert.equal(await store.accounts.repairCounters(), 0)
    const { faults, entries } = await store.ledger.check()
    assert.deepEqual(faults, [])
    assert.ok(entries > 100, 'the load did something')
  }))
