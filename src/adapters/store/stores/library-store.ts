/** The newest files of accounts with what their owners say of them, and files that are being fetched. */
import type { ImportStore } from '../../../domain/assets/library/import-store.ts'
import type { LibraryShelf, LibraryStore } from '../../../domain/assets/library/library-store.ts'
import { all, chore, defineStore, durable, get, read, report, run } from '../statements/operation.ts'
import { both, command, insertInto, postgresOnly, query, selectFrom } from '../statements/statement.ts'
import { asset, assetImport } from '../tables/assets.ts'
import { encode, integer, nullable, omit, shape, text } from '../tables/table.ts'

const noted = shape({ ...omit(asset, 'seq', 'subfolder').fields, jobId: nullable(text()) })
const SHARED = 'id, account_id, hash, size_bytes, content_type, file_path'
const UPLOAD_COLUMNS = `${SHARED}, tags, created_at, expires_at, NULL::text AS job_id, note`
const OUTPUT_COLUMNS = `${SHARED}, '[]' AS tags, created_at, expires_at, job_id::text AS job_id, note`
const IS_ALIVE = '(expires_at IS NULL OR expires_at > :now)'
const END = `AND ${IS_ALIVE} ORDER BY seq DESC LIMIT :limit`

// '0' is the character behind '/', so that a range of the index holds what lies below the folder.
const IN_MODELS = `file_path >= 'models/' AND file_path < 'models0'`
const NOT_IN_MODELS = `(file_path IS NULL OR NOT (${IN_MODELS}))`

/** Each by an index that holds no rows of the other shelves, or has the newest first. */
const NEWEST = {
  models: query(
    'library.models',
    noted,
    both({
      sqlite: `SELECT ${noted.columns} FROM asset INDEXED BY asset_upload_path
        WHERE account_id = :accountId AND job_id IS NULL AND ${IN_MODELS} ${END}`,
      postgres: `SELECT ${UPLOAD_COLUMNS} FROM asset WHERE account_id = :accountId AND ${IN_MODELS} ${END}`,
    }),
  ),
  uploads: query(
    'library.uploads',
    noted,
    both({
      sqlite: `SELECT ${noted.columns} FROM asset INDEXED BY asset_upload_newest
        WHERE account_id = :accountId AND job_id IS NULL AND ${NOT_IN_MODELS} ${END}`,
      postgres: `SELECT ${UPLOAD_COLUMNS} FROM asset WHERE account_id = :accountId AND ${NOT_IN_MODELS} ${END}`,
    }),
  ),
  outputs: query(
    'library.outputs',
    noted,
    both({
      sqlite: `SELECT ${noted.columns} FROM asset INDEXED BY asset_output_newest
        WHERE account_id = :accountId AND job_id IS NOT NULL ${END}`,
      postgres: `SELECT ${OUTPUT_COLUMNS} FROM output WHERE account_id = :accountId ${END}`,
    }),
  ),
} satisfies Record<LibraryShelf, unknown>

const FIND = query('library.find', noted, (words) => {
  const rest = `account_id = :accountId AND ${words.isIn('id', ':ids')} AND ${IS_ALIVE}`
  return words.either(
    `SELECT ${noted.columns} FROM asset WHERE ${rest}`,
    `SELECT ${UPLOAD_COLUMNS} FROM asset WHERE ${rest} UNION ALL SELECT ${OUTPUT_COLUMNS} FROM output WHERE ${rest}`,
  )
})
const IS_AS_IT_WAS = `WHERE id = :assetId AND account_id = :accountId AND ${IS_ALIVE} AND note IS NOT DISTINCT FROM :from`
const NOTE_ASSET = command('library.noteAsset', `UPDATE asset SET note = :to ${IS_AS_IT_WAS}`)
const NOTE_OUTPUT = command('library.noteOutput', postgresOnly(`UPDATE output SET note = :to ${IS_AS_IT_WAS}`))

export const libraryStore = defineStore<LibraryStore>('library', {
  listNewest: report(function* (accountId, { shelf, limit, now }) {
    return yield* all(NEWEST[shelf], { accountId, limit, now })
  }),
  findNoted: read(function* (accountId, ids, now) {
    return ids.length === 0 ? [] : yield* all(FIND, { accountId, ids, now })
  }),
  replaceNote: durable(function* (accountId, assetId, { from, to, now }) {
    const { encode: toText } = asset.fields.note
    const values = { accountId, assetId, from: toText(from), to: toText(to), now }
    return (yield* run(NOTE_ASSET, values)) > 0 || (yield* run(NOTE_OUTPUT, values)) > 0
  }),
})

const OWN = 'id = :id AND account_id = :accountId'
const LOCK = command('imports.lock', postgresOnly('SELECT pg_advisory_xact_lock(7267305, hashtext(:accountId))'))
const RUNNING = query(
  'imports.running',
  shape({ count: integer() }),
  `SELECT count(*) AS count FROM asset_import WHERE account_id = :accountId AND status = 'running' AND changed_at > :aliveSince`,
)
const INSERT = command('imports.insert', insertInto(assetImport))
const FIND_IMPORT = query('imports.find', assetImport, selectFrom(assetImport, `WHERE ${OWN}`))
const MOVE = command(
  'imports.move',
  `UPDATE asset_import SET status = :status, bytes_total = :bytesTotal, bytes_done = :bytesDone, asset_id = :assetId,
     error = :error, changed_at = :changedAt
   WHERE ${OWN} AND status = 'running'`,
)
const EXPIRE = command('imports.expire', ({ either }) => {
  const expired = '(SELECT id FROM asset_import WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit)'
  return `DELETE FROM asset_import WHERE id ${either(`IN ${expired}`, `= ANY (ARRAY${expired})`)}`
})

export const importStore = defineStore<ImportStore>('imports', {
  create: durable(function* (begun, { maxRunning, aliveSince }) {
    const { accountId } = begun
    yield* run(LOCK, { accountId })
    if (((yield* get(RUNNING, { accountId, aliveSince }))?.count ?? 0) >= maxRunning) return false
    yield* run(INSERT, encode(assetImport, begun))
    return true
  }),
  find: read(function* (accountId, id) {
    return (yield* get(FIND_IMPORT, { accountId, id })) ?? null
  }),
  move: durable(
    function* (accountId, id, { status, bytesTotal, bytesDone, assetId, error, changedAt }) {
      const values = encode(assetImport, { status, bytesTotal, bytesDone, assetId, error, changedAt })
      return (yield* run(MOVE, { accountId, id, ...values })) > 0
    },
    { isEssential: true },
  ),
  expire: chore(
    function* (now, limit) {
      return yield* run(EXPIRE, { now, limit })
    },
    { isEssential: true },
  ),
})
