/** The records of a Postgres database, for a move: on one connection, while no process of the service is alive. */
import { silentLog } from '../../../../../lib/log.ts'
import { MoveError, type RecordSource, type RecordTarget } from '../../../../domain/transfer/move-records.ts'
import type { RecordKind, RecordRow, RecordValue } from '../../../../domain/transfer/record-kinds.ts'
import { loadMigrations } from '../../migration-files.ts'
import { postgresOnly, query } from '../../statements/statement.ts'
import { repairAllCounters } from '../../stores/account-store.ts'
import { releaseLeases } from '../../stores/jobs/leases.ts'
import { integer, shape, text } from '../../tables/table.ts'
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
import { openConnections } from '../database/connections.ts'
import { mustBeMigrated, mustBeSupported } from '../database/migrate-database.ts'
import { applyMigrations, MIGRATIONS_DIRECTORY } from '../database/migrations.ts'
import { toOpenError } from '../database/open-error.ts'
import { openPartitions } from '../database/partitions.ts'
import type { ConnectionOptions } from '../database/pool.ts'
import { openSession, type Session } from '../database/session.ts'
import { runOn } from '../shared-stores.ts'
import { toSelect, toTableRows } from './record-tables.ts'

/** What follows from the records of a database and is kept beside them: made anew after all records were written. */
const nextOf = (sequence: string, newest: string) => `SELECT setval(${sequence}, greatest(1, (${newest})))`
const serial = (table: string, column: string) => `pg_get_serial_sequence('${table}', '${column}')`
const newestOf = (table: string, column: string) => `SELECT coalesce(max(${column}), 0) FROM ${table}`

/** Run in one transaction, in this order. Running them twice is the same as once. */
const DERIVE: readonly string[] = [
  nextOf(
    serial('job', 'seq'),
    'SELECT coalesce(max(seq), 0) FROM (SELECT seq FROM job UNION ALL SELECT seq FROM job_done) AS jobs',
  ),
  nextOf(
    `'asset_seq'`,
    'SELECT coalesce(max(seq), 0) FROM (SELECT seq FROM asset UNION ALL SELECT seq FROM output) AS records',
  ),
  nextOf(`'claim_turn'`, newestOf('account_load', 'served')),
  nextOf(serial('ledger_entry', 'seq'), newestOf('ledger_entry', 'seq')),
  nextOf(serial('gpu_use', 'seq'), newestOf('gpu_use', 'seq')),
  nextOf(serial('audit_log', 'seq'), newestOf('audit_log', 'seq')),
  nextOf(serial('user_file', 'id'), newestOf('user_file', 'id')),
  nextOf(serial('router_call', 'seq'), newestOf('router_call', 'seq')),
  nextOf(serial('webhook_delivery', 'seq'), newestOf('webhook_delivery', 'seq')),
  'DELETE FROM account_blob',
  `INSERT INTO account_blob (account_id, hash, records, size_bytes)
   SELECT account_id, hash, count(*), max(size_bytes)
   FROM (SELECT account_id, hash, size_bytes FROM asset UNION ALL SELECT account_id, hash, size_bytes FROM output) AS record
   GROUP BY account_id, hash`,
  'DELETE FROM account_storage',
  `INSERT INTO account_storage (account_id, bytes)
   SELECT account_id, sum(size_bytes) FROM (
     SELECT account_id, size_bytes FROM account_blob
     UNION ALL SELECT account_id, size_bytes FROM router_result WHERE account_id IS NOT NULL) AS kept
   GROUP BY account_id`,
]

interface PostgresRecords extends RecordSource, RecordTarget, AsyncDisposable {}

const ALIVE = query(
  'transfer.alive',
  shape({ id: text() }),
  postgresOnly('SELECT id FROM node WHERE alive_until > :now'),
)
const CALLS = query(
  'transfer.calls',
  shape({ calls: integer() }),
  postgresOnly(`SELECT count(*) AS calls FROM router_call WHERE state = 'running'`),
)

// The server takes 65,535 parameters in one statement.
const MAX_PARAMETERS = 30_000

/** Throws StoreOpenError when the database cannot be used, MoveError while a process of the service is alive. */
export async function openPostgresRecords(
  options: Omit<ConnectionOptions, 'log'>,
  now: Date,
): Promise<PostgresRecords> {
  await using opening = new AsyncDisposableStack()
  const session = opening.use(await prepare(options, now))
  const connections = opening.use(openConnections({ ...options, maxConnections: 4, log: silentLog }))
  const partitions = openPartitions(connections.chore)
  async function read(kind: RecordKind, after: RecordRow | null, limit: number): Promise<RecordRow[]> {
    const text = toSelect(kind, after !== null)
    const { rows } = await session.client.query<Record<string, unknown>>(text, [...(after ?? []), limit])
    return rows.map((row) => kind.columns.map((column) => toValue(row[column])))
  }

  const open = opening.move()
  return {
    kinds: RECORD_KINDS,
    readOwn: (key) => runOn(session, readOwn(key)),
    writeOwn: (key, value) => runOn(session, writeOwn(key, value)),
    moveId: () => runOn(session, ensureMoveId()),
    async settle(at) {
      const { calls } = (await session.get(CALLS)) ?? { calls: 0 }
      // Which of them were sent is told by the store's own marks, which the other store keeps elsewhere.
      if (calls > 0)
        throw new MoveError(`${calls} calls of models are under way; start the service and let them end first`)
      const leases = await runOn(session, findLeases())
      if (leases.length > 0) await session.transaction(() => runOn(session, releaseLeases(leases, at, 0)))
    },
    retire: (movedTo) => runOn(session, writeOwn('moved_to', movedTo)),
    read,
    state: async () => findState(await runOn(session, readOwn('move_progress')), read),
    async write(kind, rows, progress) {
      const expiry = kind.columns.indexOf('expires_at')
      if (['job', 'job_label', 'output'].includes(kind.name)) {
        for (const expiresAt of new Set(rows.map((row) => row[expiry]))) await partitions.ensure(Number(expiresAt))
      }
      await session.transaction(async () => {
        for (const each of toTableRows(kind, rows)) await insert(session, each)
        await runOn(session, writeProgress(progress))
      })
    },
    async derive() {
      await session.transaction(async () => {
        for (const text of DERIVE) await session.client.query(text)
      })
      await connections.chore.transaction((tx) => runOn(tx, repairAllCounters()))
    },
    open: () => runOn(session, forgetMove()),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

async function prepare(options: Omit<ConnectionOptions, 'log'>, now: Date): Promise<Session> {
  try {
    const session = await openSession(options)
    try {
      const known = loadMigrations(MIGRATIONS_DIRECTORY)
      await mustBeSupported(session)
      await applyMigrations(session, known, { clock: { now: () => now } })
      await mustBeMigrated(session, known)
      const alive = await session.all(ALIVE, { now })
      if (alive.length === 0) return session
      throw new MoveError(`${alive.length} processes of a service use the database; stop them first`)
    } catch (error) {
      await session[Symbol.asyncDispose]()
      throw error
    }
  } catch (error) {
    throw toOpenError(error, options.url)
  }
}

type TableRows = ReturnType<typeof toTableRows>[number]

async function insert(session: Session, { table, columns, rows }: TableRows): Promise<void> {
  const perStatement = Math.floor(MAX_PARAMETERS / columns.length)
  for (let from = 0; from < rows.length; from += perStatement) {
    const part = rows.slice(from, from + perStatement)
    const places = part.map(
      (_, row) => `(${columns.map((_, column) => `$${row * columns.length + column + 1}`).join(', ')})`,
    )
    const text = `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${places.join(', ')}`
    await session.client.query(text, part.flat())
  }
}

function toValue(value: unknown): RecordValue {
  if (typeof value === 'boolean') return value ? 1 : 0
  return value as RecordValue
}
