/** What a move asks of either database beside its records: values of its own, and leases that nobody holds any more. */
import { randomUUID } from 'node:crypto'
import type { MoveProgress, RecordTarget } from '../../../domain/transfer/move-records.ts'
import type { RecordKind, RecordRow } from '../../../domain/transfer/record-kinds.ts'
import { all, get, run, type Steps } from '../statements/operation.ts'
import { command, query, selectFrom, upsertInto } from '../statements/statement.ts'
import { meta } from '../tables/service.ts'
import { shape, text } from '../tables/table.ts'
import { RECORD_KINDS } from './record-kinds.ts'

const READ = query('transfer.readMeta', meta, selectFrom(meta, 'WHERE key = :key'))
const WRITE = command('transfer.writeMeta', upsertInto(meta))
const FORGET = command('transfer.forget', `DELETE FROM meta WHERE key IN ('move_progress', 'moved_to')`)
const HELD = query(
  'transfer.held',
  shape({ jobId: text(), leaseId: text() }),
  `SELECT id AS job_id, lease_id FROM job WHERE status IN ('running', 'canceling') AND lease_id IS NOT NULL`,
)

export function* readOwn(key: string): Steps<string | null> {
  return (yield* get(READ, { key }))?.value ?? null
}

export function* writeOwn(key: string, value: string): Steps<void> {
  yield* run(WRITE, { key, value })
}

export function* ensureMoveId(): Steps<string> {
  const known = yield* readOwn('move_id')
  if (known !== null) return known
  const made = randomUUID()
  yield* writeOwn('move_id', made)
  return made
}

export function writeProgress(progress: MoveProgress): Steps<void> {
  return writeOwn('move_progress', JSON.stringify(progress))
}

/** The move is over: whoever opens the database takes it for its own. */
export function* forgetMove(): Steps<void> {
  yield* run(FORGET)
}

export function* findLeases(): Steps<{ readonly jobId: string; readonly leaseId: string }[]> {
  return yield* all(HELD)
}

type ReadRecords = (kind: RecordKind, after: RecordRow | null, limit: number) => Promise<RecordRow[]>

export async function findState(progress: string | null, read: ReadRecords): ReturnType<RecordTarget['state']> {
  if (progress !== null) return { state: 'half_moved', progress: JSON.parse(progress) as MoveProgress }
  for (const kind of RECORD_KINDS) if ((await read(kind, null, 1)).length > 0) return { state: 'used' }
  return { state: 'empty' }
}
