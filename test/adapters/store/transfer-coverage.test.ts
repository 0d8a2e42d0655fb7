/** Every table and column of both stores is carried by a move, or is named here with the reason why it is not. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { constants, DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createClient } from '../../../lib/postgres/driver.ts'
import { toSelect as toPostgresSelect } from '../../../src/adapters/store/postgres/transfer/record-tables.ts'
import { openSqliteStore } from '../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { toSelect as toSqliteSelect } from '../../../src/adapters/store/sqlite/transfer/record-tables.ts'
import { RECORD_KINDS } from '../../../src/domain/transfer/record-kinds.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'

/** A table, or `table.column`, and why it stays behind. */
type LeftOut = Readonly<Record<string, string>>

const COUNTED = 'a counter, made anew from the rows that it counts'
const HELD = 'whoever held it has stopped: waiting jobs and calls are taken up anew'
const PROCESS = 'describes running processes'
const COMMON: LeftOut = {
  node: PROCESS,
  singleton: PROCESS,
  schema_migration: 'belongs to the schema of one store',
  rate_window: 'a window of seconds, long over when a move has ended',
  'job.lease_id': HELD,
  'job.lease_until': HELD,
  'job.worker_id': HELD,
  'router_call.owner': HELD,
  'router_call.lease_until': HELD,
  'webhook_delivery.lease_id': HELD,
  'resumable_upload.lease_id': HELD,
  'resumable_upload.lease_until': HELD,
}
const POSTGRES: LeftOut = {
  ...COMMON,
  'account.submitted': COUNTED,
  ...Object.fromEntries(
    ['running', 'started', 'succeeded', 'canceled', 'failed', 'expired'].map((name) => [
      `account_load.${name}`,
      COUNTED,
    ]),
  ),
  blob: 'which object of a bucket holds which bytes: made where the bytes are put',
  blob_garbage: 'objects of a bucket that are still to be removed from it',
  account_blob: 'made anew from assets and outputs',
  job_partition: 'made where rows are written',
  job_id_chosen: 'keeps two submits apart; an id that a job has is found with the job',
  'job_done.lease_id': 'recognises an end that its worker repeats; that worker has stopped',
}
const INNER_KEY = 'the key by which rows of a job belong together in this store; the id of the job is carried'
const WITH_ASSET = 'the same as in the row of the asset'
const SQLITE: LeftOut = {
  ...COMMON,
  ...Object.fromEntries(
    ['running', 'queued', 'succeeded', 'canceled', 'failed', 'expired'].map((name) => [`account.${name}`, COUNTED]),
  ),
  ...Object.fromEntries(
    ['input', 'log', 'notes', 'run', 'secret', 'submission', 'workflow'].map((part) => [`job_${part}.seq`, INNER_KEY]),
  ),
  small_bytes: 'bytes of outputs, which are moved with those in files',
  'job_output.content_type': WITH_ASSET,
  'job_output.size_bytes': WITH_ASSET,
  'job_output.hash': WITH_ASSET,
}

function findForgotten(all: ReadonlySet<string>, carried: ReadonlySet<string>, leftOut: LeftOut): string[] {
  const isNamed = (name: string) => name in leftOut || (name.split('.')[0] as string) in leftOut
  return [...all].filter((name) => !carried.has(name) && !isNamed(name)).sort()
}

/** What is named but carried, or not there at all. */
function findNeedless(all: ReadonlySet<string>, carried: ReadonlySet<string>, leftOut: LeftOut): string[] {
  return Object.keys(leftOut).filter((name) => {
    const columns = [...all].filter((column) => column === name || column.startsWith(`${name}.`))
    return columns.length === 0 || columns.some((column) => carried.has(column))
  })
}

test('a move from Postgres leaves nothing behind but what is named', async () => {
  await using database = await createTestDatabase()
  const client = createClient({ url: database.url })
  await client.connect()
  try {
    const ask = async (text: string) =>
      new Set((await client.query<{ name: string }>(text)).rows.map(({ name }) => name))
    const all = await ask(`
      SELECT table_name || '.' || column_name AS name FROM information_schema.columns JOIN information_schema.tables
        USING (table_schema, table_name) WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'`)
    for (const [index, kind] of RECORD_KINDS.entries()) {
      await client.query(`CREATE VIEW kind_${index} AS ${toPostgresSelect(kind, false).replaceAll('$1', '1')}`)
    }
    const carried = await ask(`
      SELECT DISTINCT table_name || '.' || column_name AS name FROM information_schema.view_column_usage
      WHERE view_name LIKE 'kind\\_%'`)
    assert.deepEqual(findForgotten(all, carried, POSTGRES), [])
    assert.deepEqual(findNeedless(all, carried, POSTGRES), [])
  } finally {
    await client.end()
  }
})

test('a move from SQLite leaves nothing behind but what is named', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'atelier-coverage-'))
  try {
    const store = await openSqliteStore({ directory })
    await store[Symbol.asyncDispose]()
    const database = new DatabaseSync(join(directory, 'atelier.db'))
    const all = new Set(
      database
        .prepare(
          `SELECT m.name || '.' || c.name AS name FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c
           WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`,
        )
        .all()
        .map(({ name }) => name as string),
    )
    const carried = new Set<string>()
    database.setAuthorizer((action, table, column) => {
      if (action === constants.SQLITE_READ) carried.add(`${table}.${column}`)
      return constants.SQLITE_OK
    })
    for (const kind of RECORD_KINDS) database.prepare(toSqliteSelect(kind, false))
    database.setAuthorizer(null)
    database.close()
    assert.deepEqual(findForgotten(all, carried, SQLITE), [])
    assert.deepEqual(findNeedless(all, carried, SQLITE), [])
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})
