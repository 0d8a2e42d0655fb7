/** Uploads that can be continued. A lease that has lapsed is as none. */
import type {
  CreateOutcome,
  ResumableUpload,
  UploadLease,
  UploadStore,
} from '../../../../../domain/assets/resumable/upload-store.ts'
import { toUpload, toUploadRow, UPLOAD_COLUMNS, type UploadRow } from '../../../rows/upload-row.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { lockAccounts } from '../accounts/account-counters.ts'

const OPEN = 'account_id = $1 AND asset_id IS NULL'
const PLACES = UPLOAD_COLUMNS.split(', ').map((_, index) => `$${index + 1}`)

const SUM = statement<[count: number, bytes: number]>(
  'uploads.sum',
  `SELECT count(*), coalesce(sum(length_bytes), 0)::bigint FROM resumable_upload WHERE ${OPEN}`,
)
const INSERT = statement(
  'uploads.insert',
  `INSERT INTO resumable_upload (${UPLOAD_COLUMNS}) VALUES (${PLACES.join(', ')})`,
)

/** Under the account's lock: of several at once, each sees those before it. */
export async function createUpload(
  tx: Queryable,
  upload: ResumableUpload,
  { maxCount, maxBytes }: Parameters<UploadStore['create']>[1],
): Promise<CreateOutcome> {
  await lockAccounts(tx, [upload.accountId])
  const [count, bytes] = (await tx.get(SUM, [upload.accountId])) ?? [0, 0]
  if (count >= maxCount) return 'too_many'
  if (maxBytes !== null && bytes + upload.lengthBytes > maxBytes) return 'no_room'
  await tx.run(INSERT, toUploadRow(upload))
  return 'created'
}

const FIND = statement<UploadRow>(
  'uploads.find',
  `SELECT ${UPLOAD_COLUMNS} FROM resumable_upload WHERE id = $1 AND account_id = $2`,
)

export async function findUpload(db: Queryable, accountId: string, id: string): Promise<ResumableUpload | null> {
  const row = await db.get(FIND, [id, accountId])
  return row === undefined ? null : toUpload(row)
}

const HOLD = statement<UploadRow>(
  'uploads.hold',
  `UPDATE resumable_upload SET lease_id = $1, lease_until = $2
   WHERE id = $3 AND ($4::boolean OR lease_until IS NULL OR lease_until <= $5) RETURNING ${UPLOAD_COLUMNS}`,
)

export async function holdUpload(
  tx: Queryable,
  id: string,
  { leaseId, until, now, isAlone }: Parameters<UploadStore['hold']>[1],
): Promise<ResumableUpload | null> {
  const row = await tx.get(HOLD, [leaseId, until.getTime(), id, isAlone, now.getTime()])
  return row === undefined ? null : toUpload(row)
}

const RENEW = statement('uploads.renew', 'UPDATE resumable_upload SET lease_until = $1 WHERE id = $2 AND lease_id = $3')

export async function renewUpload(tx: Queryable, id: string, { leaseId, until }: UploadLease): Promise<boolean> {
  return (await tx.run(RENEW, [until.getTime(), id, leaseId])) > 0
}

const NOTE = statement('uploads.note-hash', 'UPDATE resumable_upload SET hash = $1 WHERE id = $2 AND lease_id = $3')

export async function noteUploadHash(
  tx: Queryable,
  { id, leaseId, hash }: { readonly id: string; readonly leaseId: string; readonly hash: string | null },
): Promise<boolean> {
  return (await tx.run(NOTE, [hash, id, leaseId])) > 0
}

const RELEASE = statement(
  'uploads.release',
  `UPDATE resumable_upload SET lease_id = NULL, lease_until = NULL, asset_id = coalesce($1, asset_id)
   WHERE id = $2 AND lease_id = $3`,
)

export async function releaseUpload(
  tx: Queryable,
  { id, leaseId, assetId }: { readonly id: string; readonly leaseId: string; readonly assetId: string | null },
): Promise<void> {
  await tx.run(RELEASE, [assetId, id, leaseId])
}

const REMOVE = statement('uploads.remove', 'DELETE FROM resumable_upload WHERE id = $1 AND lease_id = $2')

export async function removeUpload(tx: Queryable, id: string, leaseId: string): Promise<void> {
  await tx.run(REMOVE, [id, leaseId])
}

const HOLD_EXPIRED = statement<UploadRow>(
  'uploads.hold-expired',
  `UPDATE resumable_upload SET lease_id = $1, lease_until = $2 WHERE id = ANY (ARRAY(
     SELECT id FROM resumable_upload
     WHERE expires_at <= $3 AND (lease_until IS NULL OR lease_until <= $3) ORDER BY expires_at LIMIT $4
     FOR UPDATE SKIP LOCKED))
   RETURNING ${UPLOAD_COLUMNS}`,
)

export async function holdExpiredUploads(
  tx: Queryable,
  { leaseId, until, now }: UploadLease,
  limit: number,
): Promise<ResumableUpload[]> {
  return (await tx.all(HOLD_EXPIRED, [leaseId, until.getTime(), now.getTime(), limit])).map(toUpload)
}

const OPEN_BYTES = statement<[number]>(
  'uploads.open-bytes',
  `SELECT coalesce(sum(length_bytes), 0)::bigint FROM resumable_upload WHERE ${OPEN}`,
)

export async function readOpenBytes(db: Queryable, accountId: string): Promise<number> {
  return (await db.get(OPEN_BYTES, [accountId]))?.[0] ?? 0
}
