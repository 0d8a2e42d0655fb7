/** The records of a data folder, for a move: read and written directly, under the folder's lock, so that no service runs on it. */
import { randomUUID } from 'node:crypto'
import type { SQLInputValue } from 'node:sqlite'
import type { MoveProgress, RecordSource, RecordTarget } from '../../../../domain/transfer/move-records.ts'
import type { RecordKind, RecordRow, RecordValue } from '../../../../domain/transfer/record-kinds.ts'
import { loadMigrations } from '../../migration-files.ts'
import { repairAllCounters } from '../../stores/account-store.ts'
import { RECORD_KINDS } from '../../transfer/record-kinds.ts'
import { prepareDataDirectory } from '../database/data-directory.ts'
import { lockDirectory } from '../database/directory-lock.ts'
import { applyMigrations, MIGRATIONS_DIRECTORY } from '../database/migrations.ts'
import { openWriter } from '../database/sqlite-connections.ts'
import { prepareRelease } from '../operations/jobs/claim-job.ts'
import { prepareEnsureMeta, prepareReadMeta, prepareWriteMeta } from '../operations/meta.ts'
import { prepareRows } from '../operations/statement.ts'
import { runOn } from '../shared-stores.ts'
import { openStatements } from '../statements.ts'
import { prepareWrite, toSelect } from './record-tables.ts'

interface SqliteRecords extends RecordSource, RecordTarget, Disposable {}

/** Throws StoreOpenError when a service holds the folder. */
export function openSqliteRecords(directory: string, now: Date): SqliteRecords {
  using opening = new DisposableStack()
  const files = prepareDataDirectory(directory)
  opening.adopt(lockDirectory(directory, files.lock), (lock) => lock.release())
  const database = opening.adopt(openWriter(files.database, { synchronous: 'FULL', maxPages: null }), (opened) =>
    opened.close(),
  )
  applyMigrations(database, loadMigrations(MIGRATIONS_DIRECTORY), now)
  const readMeta = prepareReadMeta(database)
  const writeMeta = prepareWriteMeta(database)
  const ensureMeta = prepareEnsureMeta(database)

  function inTransaction(body: () => void): void {
    database.exec('BEGIN IMMEDIATE')
    try {
      body()
      database.exec('COMMIT')
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      throw error
    }
  }

  async function read(kind: RecordKind, after: RecordRow | null, limit: number): Promise<RecordRow[]> {
    const rows = prepareRows<RecordValue[]>(database, toSelect(kind, after !== null))
    return rows.all(...((after ?? []) as SQLInputValue[]), limit).map((row) => row.map(withoutNul))
  }

  const open = opening.move()
  return {
    kinds: RECORD_KINDS,
    readOwn: async (key) => readMeta(key),
    writeOwn: async (key, value) => writeMeta({ key, value }),
    moveId: async () => ensureMeta({ key: 'move_id', value: randomUUID() }),
    async settle(now) {
      const held = prepareRows<[string, string]>(
        database,
        `SELECT id, lease_id FROM job WHERE status IN ('running', 'canceling') AND lease_id IS NOT NULL`,
      ).all()
      const leases = held.map(([jobId, leaseId]) => ({ jobId, leaseId }))
      inTransaction(() => void prepareRelease(database)({ leases, now }))
    },
    async retire(movedTo) {
      writeMeta({ key: 'moved_to', value: movedTo })
    },
    read,
    async state() {
      const progress = readMeta('move_progress')
      if (progress !== null) return { state: 'half_moved', progress: JSON.parse(progress) as MoveProgress }
      for (const kind of RECORD_KINDS) if ((await read(kind, null, 1)).length > 0) return { state: 'used' }
      return { state: 'empty' }
    },
    async write(kind, rows, progress) {
      const writeRow = prepareWrite(database, kind)
      inTransaction(() => {
        for (const row of rows) writeRow(row)
        writeMeta({ key: 'move_progress', value: JSON.stringify(progress) })
      })
    },
    async derive() {
      inTransaction(() => void runOn(openStatements(database), repairAllCounters()))
    },
    async open() {
      inTransaction(() => void database.exec(`DELETE FROM meta WHERE key IN ('move_progress', 'moved_to')`))
    },
    [Symbol.dispose]: () => open.dispose(),
  }
}

/** Not every database can hold U+0000 in a text; logs and messages of nodes may have one. It is shown as the symbol for it. */
function withoutNul(value: RecordValue): RecordValue {
  return typeof value === 'string' && value.includes('\u0000') ? value.replaceAll('\u0000', '\u2400') : value
}
