/** Uploads that can be continued. A lease that has lapsed, or whose process is gone, is as none. */
import type { UploadStore } from '../../../domain/assets/resumable/upload-store.ts'
import { all, chore, defineStore, durable, get, read, relaxed, run, together } from '../statements/operation.ts'
import { command, insertInto, postgresOnly, query, selectFrom } from '../statements/statement.ts'
import { resumableUpload } from '../tables/assets.ts'
import { encode, integer, omit, shape } from '../tables/table.ts'

const upload = omit(resumableUpload, 'leaseId', 'leaseUntil')

const LOCK_ACCOUNT = command(
  'uploads.lockAccount',
  postgresOnly('SELECT 1 FROM account WHERE id = :accountId FOR NO KEY UPDATE'),
)
const SUM = query(
  'uploads.sum',
  shape({ count: integer(), bytes: integer() }),
  `SELECT count(*) AS count, coalesce(sum(length_bytes), 0) AS bytes FROM resumable_upload
   WHERE account_id = :accountId AND asset_id IS NULL`,
)
const INSERT = command('uploads.insert', insertInto(resumableUpload, upload))
const FIND = query(
  'uploads.find',
  upload,
  selectFrom(resumableUpload, 'WHERE id = :id AND account_id = :accountId', upload),
)
const HOLD = query(
  'uploads.hold',
  upload,
  `UPDATE resumable_upload SET lease_id = :leaseId, lease_until = :until
   WHERE id = :id AND (CAST(:isAlone AS integer) = 1 OR lease_until IS NULL OR lease_until <= :now) RETURNING ${upload.columns}`,
)
const UNDER_LEASE = 'WHERE id = :id AND lease_id = :leaseId'
const RENEW = command('uploads.renew', `UPDATE resumable_upload SET lease_until = :until ${UNDER_LEASE}`)
const NOTE_HASH = command('uploads.noteHash', `UPDATE resumable_upload SET hash = :hash ${UNDER_LEASE}`)
const RELEASE = command(
  'uploads.release',
  `UPDATE resumable_upload SET lease_id = NULL, lease_until = NULL, asset_id = coalesce(:assetId, asset_id) ${UNDER_LEASE}`,
)
const REMOVE = command('uploads.remove', `DELETE FROM resumable_upload ${UNDER_LEASE}`)
const HOLD_EXPIRED = query(
  'uploads.holdExpired',
  upload,
  ({ either }) => `
    UPDATE resumable_upload SET lease_id = :leaseId, lease_until = :until WHERE id ${either('IN (', '= ANY (ARRAY(')}
      SELECT id FROM resumable_upload
      WHERE expires_at <= :now AND (lease_until IS NULL OR lease_until <= :now) ORDER BY expires_at LIMIT :limit
      ${either(')', 'FOR UPDATE SKIP LOCKED))')}
    RETURNING ${upload.columns}`,
)

export const uploadStore = defineStore<UploadStore>('uploads', {
  // Under the account's lock: of several at once, each sees those before it.
  create: durable(function* (created, { maxCount, maxBytes }) {
    const { accountId } = created
    const [, sum] = yield* together(run(LOCK_ACCOUNT, { accountId }), get(SUM, { accountId }))
    const { count, bytes } = sum ?? { count: 0, bytes: 0 }
    if (count >= maxCount) return 'too_many'
    if (maxBytes !== null && bytes + created.lengthBytes > maxBytes) return 'no_room'
    yield* run(INSERT, encode(upload, created))
    return 'created'
  }),
  find: read(function* (accountId, id) {
    return (yield* get(FIND, { accountId, id })) ?? null
  }),
  hold: relaxed(
    function* (id, { leaseId, until, now, isAlone }) {
      return (yield* get(HOLD, { id, leaseId, until, now, isAlone: Number(isAlone) })) ?? null
    },
    { isEssential: true, isTransaction: true },
  ),
  renew: relaxed(
    function* (id, { leaseId, until }) {
      return (yield* run(RENEW, { id, leaseId, until })) > 0
    },
    { isEssential: true, isTransaction: true, isRepeatable: true },
  ),
  noteHash: durable(
    function* (id, leaseId, hash) {
      return (yield* run(NOTE_HASH, { id, leaseId, hash })) > 0
    },
    { isRepeatable: true },
  ),
  release: durable(
    function* (id, leaseId, { assetId }) {
      yield* run(RELEASE, { id, leaseId, assetId })
    },
    { isEssential: true, isRepeatable: true },
  ),
  remove: durable(
    function* (id, leaseId) {
      yield* run(REMOVE, { id, leaseId })
    },
    { isEssential: true, isRepeatable: true },
  ),
  holdExpired: chore(
    function* ({ leaseId, until, now }, limit) {
      return yield* all(HOLD_EXPIRED, { leaseId, until, now, limit })
    },
    { isEssential: true },
  ),
  openBytes: read(function* (accountId) {
    return (yield* get(SUM, { accountId }))?.bytes ?? 0
  }),
})
