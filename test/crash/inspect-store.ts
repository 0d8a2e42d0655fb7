/** Inspects the data folder after the last crash: the database is intact, counters match rows, and no secret is left. */
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { storeFiles } from '../../src/adapters/store/sqlite/database/data-directory.ts'
import { SECRET } from './ledger.ts'

const COUNTED_AS: Readonly<Record<string, readonly string[]>> = {
  queued: ['queued'],
  running: ['running', 'canceling'],
  succeeded: ['succeeded'],
  canceled: ['canceled'],
  failed: ['failed'],
  expired: ['expired'],
}

export async function inspectStore(dataDir: string): Promise<void> {
  const db = new DatabaseSync(storeFiles(dataDir).database, { readOnly: true })
  try {
    assert.deepEqual(
      db
        .prepare('PRAGMA integrity_check')
        .all()
        .map((row) => Object.values(row)),
      [['ok']],
    )
    checkCounters(db)
    assert.equal(countOf(db, 'SELECT count(*) AS n FROM job_secret'), 0)
    assert.equal(countOf(db, 'SELECT count(*) AS n FROM job_notes'), 0)
    const doubled =
      'SELECT count(*) AS n FROM (SELECT job_id FROM idempotency_key WHERE job_id IS NOT NULL GROUP BY job_id HAVING count(*) > 1)'
    assert.equal(countOf(db, doubled), 0, 'a job was made under two keys')
    const unlisted =
      'SELECT count(*) AS n FROM job_output o WHERE NOT EXISTS (SELECT 1 FROM asset a WHERE a.id = o.asset_id)'
    assert.equal(countOf(db, unlisted), 0, 'an output has no asset record')
  } finally {
    db.close()
  }
  assert.deepEqual(await readdir(join(dataDir, 'blobs', 'tmp')), [], 'half-written bytes were left behind')
  await refuseSecret(dataDir)
}

async function refuseSecret(dataDir: string): Promise<void> {
  for (const entry of await readdir(dataDir, { withFileTypes: true })) {
    if (!entry.isFile()) continue
    const bytes = await readFile(join(dataDir, entry.name))
    assert.ok(!bytes.includes(SECRET), `a credential stands in ${entry.name}`)
  }
}

function checkCounters(db: DatabaseSync): void {
  const counters = db.prepare('SELECT queued, running, succeeded, canceled, failed, expired FROM account').get() ?? {}
  for (const [counter, statuses] of Object.entries(COUNTED_AS)) {
    const marks = statuses.map(() => '?').join(', ')
    const rows = db.prepare(`SELECT count(*) AS n FROM job WHERE status IN (${marks})`).get(...statuses)
    assert.equal(counters[counter], rows?.['n'], `the account's ${counter} counter`)
  }
}

function countOf(db: DatabaseSync, sql: string): number {
  return Number(db.prepare(sql).get()?.['n'])
}
