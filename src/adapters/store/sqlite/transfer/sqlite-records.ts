/** The records of a data folder, for a move: read and written directly, under the folder's lock, so that no service runs on it. */
import type { SQLInputValue } from 'node:sqlite'
import type { RecordSource, RecordTarget } from '../../../../domain/transfer/move-records.ts'
import type { RecordKind, RecordRow, RecordValue } from '../../../../domain/transfer/record-kinds.ts'
import { loadMigrations } from '../../migration-files.ts'
import { repairAllCounters } from '../../stores/account-store.ts'
import {
  ensureMoveId,
  findLeases,
  findState,
  forgetMove,
  readOwn,
  writeOwn,
  writeProgress,
} from '../../transfer/move-steps.ts'
import { RECORD_KINDS } from '../../transfer/record-kinds.ts'
import { prepareDataDirectory } from '../database/data-directory.ts'
import { lockDirectory } from '../database/directory-lock.ts'
import { applyMigrations, MIGRATIONS_DIRECTORY } from '../database/migrations.ts'
import { openWriter } from '../database/sqlite-connections.ts'
import { prepareRelease } from '../operations/jobs/claim-job.ts'
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
  const statements = openStatements(database)

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
    const select = database.prepare(toSelect(kind, after !== null))
    const rows = select.all(...((after ?? []) as SQLInputValue[]), limit)
    return rows.map((row) => kind.columns.map((column) => withoutNul(row[column] as RecordValue)))
  }

  const open = opening.move()
  return {
    kinds: RECORD_KINDS,
    readOwn: async (key) => runOn(statements, readOwn(key)),
    writeOwn: async (key, value) => runOn(statements, writeOwn(key, value)),
    moveId: async () => runOn(statements, ensureMoveId()),
    async settle(now) {
      const leases = runOn(statements, findLeases())
      inTransaction(() => void prepareRelease(database)({ leases, now }))
    },
    retire: async (movedTo) => runOn(statements, writeOwn('moved_to', movedTo)),
    read,
    state: () => findState(runOn(statements, readOwn('move_progress')), read),
    async write(kind, rows, progress) {
      const writeRow = prepareWrite(database, kind)
      inTransaction(() => {
        for (const row of rows) writeRow(row)
        runOn(statements, writeProgress(progress))
      })
    },
    async derive() {
      inTransaction(() => void runOn(statements, repairAllCounters()))
    },
    open: async () => runOn(statements, forgetMove()),
    [Symbol.dispose]: () => open.dispose(),
  }
}

/** Not every database can hold U+0000 in a text; logs and messages of nodes may have one. It is shown as the symbol for it. */
function withoutNul(value: RecordValue): RecordValue {
  return typeof value === 'string' && value.includes('\u0000') ? value.replaceAll('\u0000', '\u2400') : value
}
