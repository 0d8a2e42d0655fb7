/** The records of a Postgres database, for a move: on one connection, while no process of the service is alive. */
import { randomUUID } from 'node:crypto'
import { silentLog } from '../../../../../lib/log.ts'
import {
  MoveError,
  type MoveProgress,
  type RecordSource,
  type RecordTarget,
} from '../../../../domain/transfer/move-records.ts'
import type { RecordKind, RecordRow, RecordValue } from '../../../../domain/transfer/record-kinds.ts'
import { loadMigrations } from '../../migration-files.ts'
import { repairAllCounters } from '../../stores/account-store.ts'
import { releaseLeases } from '../../stores/jobs/leases.ts'
import { RECORD_KINDS } from '../../transfer/record-kinds.ts'
import { openConnections } from '../database/connections.ts'
import { mustBeMigrated, mustBeSupported } from '../database/migrate-database.ts'
import { applyMigrations, MIGRATIONS_DIRECTORY } from '../database/migrations.ts'
import { toOpenError } from '../database/open-error.ts'
import { openPartitions } from '../database/partitions.ts'
import type { ConnectionOptions } from '../database/pool.ts'
import { openSession, type Session } from '../database/session.ts'
import { statement } from '../database/statement.ts'
import { runOn } from '../shared-stores.ts'
import { DERIVE } from './derived-rows.ts'
import { toSelect, toTableRows } from './record-tables.ts'

interface PostgresRecords extends RecordSource, RecordTarget, AsyncDisposable {}

const READ_META = statement<[string]>('transfer.read-meta', 'SELECT value FROM meta WHERE key = $1')
const WRITE_META = statement(
  'transfer.write-meta',
  'INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
)
const ENSURE_META = statement(
  'transfer.ensure-meta',
  'INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING',
)
const ALIVE = statement<[string]>('transfer.alive', 'SELECT id FROM node WHERE alive_until > $1')
const CALLS = statement<[number]>('transfer.calls', `SELECT count(*) FROM router_call WHERE state = 'running'`)
const HELD = statement<[string, string]>(
  'transfer.held',
  `SELECT id, lease_id FROM job WHERE status IN ('running', 'canceling') AND lease_id IS NOT NULL`,
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
  const readMeta = async (key: string) => (await session.get(READ_META, [key]))?.[0] ?? null
  const writeMeta = (key: string, value: string) => session.run(WRITE_META, [key, value])
  async function read(kind: RecordKind, after: RecordRow | null, limit: number): Promise<RecordRow[]> {
    const text = toSelect(kind, after !== null)
    const rows = await session.all<unknown[]>({ name: '', text }, [...(after ?? []), limit])
    return rows.map((row) => row.map(toValue))
  }

  const open = opening.move()
  return {
    kinds: RECORD_KINDS,
    readOwn: readMeta,
    async writeOwn(key, value) {
      await writeMeta(key, value)
    },
    async moveId() {
      const made = randomUUID()
      await session.run(ENSURE_META, ['move_id', made])
      return (await readMeta('move_id')) ?? made
    },
    async settle(at) {
      const [calls = 0] = (await session.get(CALLS)) ?? []
      // Which of them were sent is told by the store's own marks, which the other store keeps elsewhere.
      if (calls > 0)
        throw new MoveError(`${calls} calls of models are under way; start the service and let them end first`)
      const held = await session.all(HELD)
      const leases = held.map(([jobId, leaseId]) => ({ jobId, leaseId }))
      if (leases.length > 0) await session.transaction(() => runOn(session, releaseLeases(leases, at, 0)))
    },
    async retire(movedTo) {
      await writeMeta('moved_to', movedTo)
    },
    read,
    async state() {
      const progress = await readMeta('move_progress')
      if (progress !== null) return { state: 'half_moved', progress: JSON.parse(progress) as MoveProgress }
      for (const kind of RECORD_KINDS) if ((await read(kind, null, 1)).length > 0) return { state: 'used' }
      return { state: 'empty' }
    },
    async write(kind, rows, progress) {
      const expiry = kind.columns.indexOf('expires_at')
      if (['job', 'job_label', 'output'].includes(kind.name)) {
        for (const expiresAt of new Set(rows.map((row) => row[expiry]))) await partitions.ensure(Number(expiresAt))
      }
      await session.transaction(async () => {
        for (const each of toTableRows(kind, rows)) await insert(session, each)
        await writeMeta('move_progress', JSON.stringify(progress))
      })
    },
    async derive() {
      await session.transaction(async () => {
        for (const text of DERIVE) await session.run({ name: '', text })
      })
      await connections.chore.transaction((tx) => runOn(tx, repairAllCounters()))
    },
    async open() {
      await session.run({ name: '', text: `DELETE FROM meta WHERE key IN ('move_progress', 'moved_to')` })
    },
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
      const alive = await session.all(ALIVE, [now.getTime()])
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
    await session.run({ name: '', text }, part.flat())
  }
}

function toValue(value: unknown): RecordValue {
  if (typeof value === 'boolean') return value ? 1 : 0
  return value as RecordValue
}
