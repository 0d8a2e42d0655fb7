/** Small files of accounts: each write looks at the account's sums in the same transaction. */
import type { DatabaseSync } from 'node:sqlite'
import { prepareRows } from '../statement.ts'

export type UserFileRow = readonly [path: string, sizeBytes: number, createdAt: number, modifiedAt: number]

type PutAnswer = UserFileRow | 'exists' | 'no_room'

interface PutUserFileInput {
  readonly accountId: string
  readonly path: string
  readonly bytes: Uint8Array
  readonly overwrite: boolean
  readonly now: number
  readonly maxFiles: number
  readonly maxTotalBytes: number
}

interface UserFileQuery {
  readonly accountId: string
  readonly path: string
}

const COLUMNS = 'path, size_bytes, created_at, modified_at'

export function preparePutUserFile(database: DatabaseSync): (input: PutUserFileInput) => PutAnswer {
  const find = prepareRows<[sizeBytes: number]>(
    database,
    'SELECT size_bytes FROM user_file WHERE account_id = ? AND path = ?',
  )
  const sum = prepareRows<[files: number, bytes: number]>(
    database,
    'SELECT count(*), coalesce(sum(size_bytes), 0) FROM user_file WHERE account_id = ?',
  )
  const upsert = prepareRows<UserFileRow>(
    database,
    `INSERT INTO user_file (account_id, path, size_bytes, created_at, modified_at, bytes) VALUES (?1, ?2, ?3, ?4, ?4, ?5)
     ON CONFLICT (account_id, path) DO UPDATE SET
       size_bytes = excluded.size_bytes, modified_at = excluded.modified_at, bytes = excluded.bytes
     RETURNING ${COLUMNS}`,
  )
  return ({ accountId, path, bytes, overwrite, now, maxFiles, maxTotalBytes }) => {
    const known = find.get(accountId, path)
    if (known !== undefined && !overwrite) return 'exists'
    const [files, total] = sum.get(accountId) ?? [0, 0]
    const isTooMuch = total - (known?.[0] ?? 0) + bytes.byteLength > maxTotalBytes
    if (isTooMuch || (known === undefined && files >= maxFiles)) return 'no_room'
    return upsert.get(accountId, path, bytes.byteLength, now, bytes) ?? 'no_room'
  }
}

export function prepareReadUserFile(database: DatabaseSync): (query: UserFileQuery) => Uint8Array | null {
  const select = prepareRows<[Uint8Array]>(database, 'SELECT bytes FROM user_file WHERE account_id = ? AND path = ?')
  return ({ accountId, path }) => select.get(accountId, path)?.[0] ?? null
}

export function prepareListUserFiles(database: DatabaseSync): (accountId: string) => UserFileRow[] {
  const select = prepareRows<UserFileRow>(
    database,
    `SELECT ${COLUMNS} FROM user_file WHERE account_id = ? ORDER BY path`,
  )
  return (accountId) => select.all(accountId)
}

interface MoveUserFileInput {
  readonly accountId: string
  readonly from: string
  readonly to: string
  readonly overwrite: boolean
}

export function prepareMoveUserFile(
  database: DatabaseSync,
): (input: MoveUserFileInput) => UserFileRow | 'exists' | 'not_found' {
  const find = prepareRows<UserFileRow>(database, `SELECT ${COLUMNS} FROM user_file WHERE account_id = ? AND path = ?`)
  const remove = database.prepare('DELETE FROM user_file WHERE account_id = ? AND path = ?')
  const rename = prepareRows<UserFileRow>(
    database,
    `UPDATE user_file SET path = ?3 WHERE account_id = ?1 AND path = ?2 RETURNING ${COLUMNS}`,
  )
  return ({ accountId, from, to, overwrite }) => {
    const source = find.get(accountId, from)
    if (source === undefined) return 'not_found'
    if (from === to) return source
    if (find.get(accountId, to) !== undefined) {
      if (!overwrite) return 'exists'
      remove.run(accountId, to)
    }
    return rename.get(accountId, from, to) ?? 'not_found'
  }
}

export function prepareRemoveUserFile(database: DatabaseSync): (query: UserFileQuery) => boolean {
  const remove = database.prepare('DELETE FROM user_file WHERE account_id = ? AND path = ?')
  return ({ accountId, path }) => remove.run(accountId, path).changes > 0
}
