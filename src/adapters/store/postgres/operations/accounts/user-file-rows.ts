/** Small files of accounts. Writes of one account come one after the other, so that each sees the sums that it must not exceed. */
import type { PutUserFile, UserFileInfo } from '../../../../../domain/accounts/user-files.ts'
import { type Queryable, statement } from '../../database/statement.ts'

type UserFileRow = [path: string, sizeBytes: number, createdAt: number, modifiedAt: number]

const COLUMNS = 'path, size_bytes, created_at, modified_at'

function toInfo([path, sizeBytes, createdAt, modifiedAt]: UserFileRow): UserFileInfo {
  return { path, sizeBytes, createdAt: new Date(createdAt), modifiedAt: new Date(modifiedAt) }
}

// Not the account's row: whoever saves settings shall not wait for a submit, nor a submit for them.
const LOCK = statement('userFiles.lock', 'SELECT pg_advisory_xact_lock(7267304, hashtext($1))')
const FIND = statement<UserFileRow>(
  'userFiles.find',
  `SELECT ${COLUMNS} FROM user_file WHERE account_id = $1 AND path = $2`,
)
const SUM = statement<[files: number, bytes: number]>(
  'userFiles.sum',
  'SELECT count(*), coalesce(sum(size_bytes), 0)::bigint FROM user_file WHERE account_id = $1',
)
const PUT = statement<UserFileRow>(
  'userFiles.put',
  `INSERT INTO user_file (account_id, path, size_bytes, created_at, modified_at, bytes) VALUES ($1, $2, $3, $4, $4, $5)
   ON CONFLICT (account_id, path) DO UPDATE SET
     size_bytes = excluded.size_bytes, modified_at = excluded.modified_at, bytes = excluded.bytes
   RETURNING ${COLUMNS}`,
)

export async function putUserFile(
  tx: Queryable,
  accountId: string,
  { path, bytes, overwrite, now, limits }: PutUserFile,
): Promise<UserFileInfo | 'exists' | 'no_room'> {
  const [, known, sums] = await Promise.all([
    tx.run(LOCK, [accountId]),
    tx.get(FIND, [accountId, path]),
    tx.get(SUM, [accountId]),
  ])
  if (known !== undefined && !overwrite) return 'exists'
  const [files, total] = sums ?? [0, 0]
  const isTooMuch = total - (known?.[1] ?? 0) + bytes.byteLength > limits.maxTotalBytes
  if (isTooMuch || (known === undefined && files >= limits.maxFiles)) return 'no_room'
  const row = await tx.get(PUT, [accountId, path, bytes.byteLength, now.getTime(), bytes])
  return row === undefined ? 'no_room' : toInfo(row)
}

const READ = statement<[Uint8Array]>(
  'userFiles.read',
  'SELECT bytes FROM user_file WHERE account_id = $1 AND path = $2',
)

export async function readUserFile(db: Queryable, accountId: string, path: string): Promise<Uint8Array | null> {
  return (await db.get(READ, [accountId, path]))?.[0] ?? null
}

const LIST = statement<UserFileRow>(
  'userFiles.list',
  `SELECT ${COLUMNS} FROM user_file WHERE account_id = $1 ORDER BY path`,
)

export async function listUserFiles(db: Queryable, accountId: string): Promise<UserFileInfo[]> {
  return (await db.all(LIST, [accountId])).map(toInfo)
}

interface MoveInput {
  readonly from: string
  readonly to: string
  readonly overwrite: boolean
}

const REMOVE = statement('userFiles.remove', 'DELETE FROM user_file WHERE account_id = $1 AND path = $2')
const RENAME = statement<UserFileRow>(
  'userFiles.rename',
  `UPDATE user_file SET path = $3 WHERE account_id = $1 AND path = $2 RETURNING ${COLUMNS}`,
)

export async function moveUserFile(
  tx: Queryable,
  accountId: string,
  { from, to, overwrite }: MoveInput,
): Promise<UserFileInfo | 'exists' | 'not_found'> {
  const [, source, target] = await Promise.all([
    tx.run(LOCK, [accountId]),
    tx.get(FIND, [accountId, from]),
    tx.get(FIND, [accountId, to]),
  ])
  if (source === undefined) return 'not_found'
  if (from === to) return toInfo(source)
  if (target !== undefined) {
    if (!overwrite) return 'exists'
    await tx.run(REMOVE, [accountId, to])
  }
  const row = await tx.get(RENAME, [accountId, from, to])
  return row === undefined ? 'not_found' : toInfo(row)
}

/** false: there was none. */
export async function removeUserFile(tx: Queryable, accountId: string, path: string): Promise<boolean> {
  const [, removed] = await Promise.all([tx.run(LOCK, [accountId]), tx.run(REMOVE, [accountId, path])])
  return removed > 0
}
