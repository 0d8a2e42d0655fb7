/**
 * Kills a process that submits and claims as fast as it can, again and again, and looks from outside at what it left: never
 * more running than an account may, counters equal to rows, a ledger that adds up.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { storeFiles } from '../../src/adapters/store/sqlite/database/data-directory.ts'
import { openSqliteStore } from '../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { LIMITS } from './limit-load.ts'

const SCRIPT = fileURLToPath(new URL('./limit-load.ts', import.meta.url))

export async function withFolder(body: (directory: string) => Promise<void>): Promise<void> {
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

/** By how much it has done, not by time: a kill after nothing shows nothing. */
async function workAndKill(directory: string, afterJobs: number): Promise<void> {
  const child = spawn(process.execPath, [SCRIPT, directory], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  let jobs = 0
  for await (const points of child.stdout) {
    jobs += points.length
    if (jobs >= afterJobs) child.kill('SIGKILL')
  }
  await exited
  assert.equal(child.signalCode, 'SIGKILL', 'the load broke by itself')
}

export interface KillLimitsOptions {
  readonly kills: number
  readonly seed: number
  readonly report?: (line: string) => void
}

export function killAndCheckLimits({ kills, seed, report = () => {} }: KillLimitsOptions): Promise<void> {
  return withFolder(async (directory) => {
    const random = seededRandom(seed)
    for (let kill = 1; kill <= kills; kill++) {
      await workAndKill(directory, random.between(10, 80))
      for (const [id, { counted, stored }] of Object.entries(countHeld(directory))) {
        assert.ok(counted <= LIMITS[id], `${counted} jobs of ${id} were left running`)
        assert.equal(stored, counted, `the counter of ${id}`)
      }
      if (kill % 10 === 0) report(`${kill} kills under limits`)
    }
    await using store = await openSqliteStore({ directory })
    assert.equal(await store.accounts.repairCounters(), 0)
    const { faults, entries } = await store.ledger.check()
    assert.deepEqual(faults, [])
    assert.ok(entries > 100, 'the load did something')
    report(`${entries} ledger entries, and they add up`)
  })
}
