/** Small files of accounts. Writes of one account come one after the other, so that each sees the sums that it must not exceed. */
import type { UserFileStore } from '../../../domain/accounts/user-files.ts'
import { all, defineStore, durable, get, read, run, together } from '../statements/operation.ts'
import { command, postgresOnly, query, selectFrom } from '../statements/statement.ts'
import { userFile } from '../tables/accounts.ts'
import { integer, pick, shape } from '../tables/table.ts'

const info = pick(userFile, 'path', 'sizeBytes', 'createdAt', 'modifiedAt')
const BY_PATH = 'WHERE account_id = :accountId AND path = :path'

// Not the account's row: whoever saves settings shall not wait for a submit, nor a submit for them.
const LOCK = command('userFiles.lock', postgresOnly('SELECT pg_advisory_xact_lock(7267304, hashtext(:accountId))'))
const FIND = query('userFiles.find', info, selectFrom(userFile, BY_PATH, info))
const SUM = query(
  'userFiles.sum',
  shape({ files: integer(), total: integer() }),
  'SELECT count(*) AS files, coalesce(sum(size_bytes), 0) AS total FROM user_file WHERE account_id = :accountId',
)
const PUT = query(
  'userFiles.put',
  info,
  `INSERT INTO user_file (account_id, path, size_bytes, created_at, modified_at, bytes)
   VALUES (:accountId, :path, :sizeBytes, :now, :now, :bytes)
   ON CONFLICT (account_id, path) DO UPDATE SET
     size_bytes = excluded.size_bytes, modified_at = excluded.modified_at, bytes = excluded.bytes
   RETURNING ${info.columns}`,
)
const READ = query('userFiles.read', pick(userFile, 'bytes'), `SELECT bytes FROM user_file ${BY_PATH}`)
const LIST = query('userFiles.list', info, selectFrom(userFile, 'WHERE account_id = :accountId ORDER BY path', info))
const REMOVE = command('userFiles.remove', `DELETE FROM user_file ${BY_PATH}`)
const RENAME = query('userFiles.rename', info, `UPDATE user_file SET path = :to ${BY_PATH} RETURNING ${info.columns}`)

export const userFileStore = defineStore<UserFileStore>('userFiles', {
  put: durable(
    function* (accountId, { path, bytes, overwrite, now, limits }) {
      const [, known, sums] = yield* together(
        run(LOCK, { accountId }),
        get(FIND, { accountId, path }),
        get(SUM, { accountId }),
      )
      if (known !== undefined && !overwrite) return { outcome: 'exists' }
      const { files, total } = sums ?? { files: 0, total: 0 }
      const isTooMuch = total - (known?.sizeBytes ?? 0) + bytes.byteLength > limits.maxTotalBytes
      if (isTooMuch || (known === undefined && files >= limits.maxFiles)) return { outcome: 'no_room' }
      const file = yield* get(PUT, { accountId, path, sizeBytes: bytes.byteLength, now, bytes })
      return file === undefined ? { outcome: 'no_room' } : { outcome: 'stored', file }
    },
    { weigh: (_, { bytes }) => bytes.byteLength },
  ),
  read: read(function* (accountId, path) {
    return (yield* get(READ, { accountId, path }))?.bytes ?? null
  }),
  list: read(function* (accountId) {
    return yield* all(LIST, { accountId })
  }),
  move: durable(function* (accountId, { from, to, overwrite }) {
    const [, source, target] = yield* together(
      run(LOCK, { accountId }),
      get(FIND, { accountId, path: from }),
      get(FIND, { accountId, path: to }),
    )
    if (source === undefined) return { outcome: 'not_found' }
    if (from === to) return { outcome: 'stored', file: source }
    if (target !== undefined) {
      if (!overwrite) return { outcome: 'exists' }
      yield* run(REMOVE, { accountId, path: to })
    }
    const file = yield* get(RENAME, { accountId, path: from, to })
    return file === undefined ? { outcome: 'not_found' } : { outcome: 'stored', file }
  }),
  remove: durable(
    function* (accountId, path) {
      const [, removed] = yield* together(run(LOCK, { accountId }), run(REMOVE, { accountId, path }))
      return removed > 0
    },
    { isEssential: true },
  ),
})
