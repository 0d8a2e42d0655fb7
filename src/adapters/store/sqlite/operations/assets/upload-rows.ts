/** Uploads that can be continued. A lease that has lapsed, or whose process is gone, is as none. */
import type { DatabaseSync } from 'node:sqlite'
import type {
  CreateOutcome,
  ResumableUpload,
  UploadLease,
  UploadStore,
} from '../../../../../domain/assets/resumable/upload-store.ts'
import { toUpload, toUploadRow, UPLOAD_COLUMNS, type UploadRow } from '../../../rows/upload-row.ts'
import { prepareRows } from '../statement.ts'

interface Create {
  readonly upload: ResumableUpload
  readonly bounds: Parameters<UploadStore['create']>[1]
}

const OPEN = 'account_id = ? AND asset_id IS NULL'

export function prepareCreateUpload(database: DatabaseSync): (input: Create) => CreateOutcome {
  const sum = prepareRows<[count: number, bytes: number]>(
    database,
    `SELECT count(*), coalesce(sum(length_bytes), 0) FROM resumable_upload WHERE ${OPEN}`,
  )
  const places = UPLOAD_COLUMNS.split(', ').map(() => '?')
  const insert = database.prepare(`INSERT INTO resumable_upload (${UPLOAD_COLUMNS}) VALUES (${places.join(', ')})`)
  return ({ upload, bounds: { maxCount, maxBytes } }) => {
    const [count, bytes] = sum.get(upload.accountId) ?? [0, 0]
    if (count >= maxCount) return 'too_many'
    if (maxBytes !== null && bytes + upload.lengthBytes > maxBytes) return 'no_room'
    insert.run(...toUploadRow(upload))
    return 'created'
  }
}

export function prepareFindUpload(
  database: DatabaseSync,
): (query: { readonly accountId: string; readonly id: string }) => ResumableUpload | null {
  const select = prepareRows<UploadRow>(
    database,
    `SELECT ${UPLOAD_COLUMNS} FROM resumable_upload WHERE id = ? AND account_id = ?`,
  )
  return ({ accountId, id }) => {
    const row = select.get(id, accountId)
    return row === undefined ? null : toUpload(row)
  }
}

export function prepareHoldUpload(
  database: DatabaseSync,
): (input: UploadLease & { readonly id: string; readonly isAlone: boolean }) => ResumableUpload | null {
  const update = prepareRows<UploadRow>(
    database,
    `UPDATE resumable_upload SET lease_id = ?, lease_until = ?
     WHERE id = ? AND (? OR lease_until IS NULL OR lease_until <= ?) RETURNING ${UPLOAD_COLUMNS}`,
  )
  return ({ id, leaseId, until, now, isAlone }) => {
    const row = update.get(leaseId, until.getTime(), id, isAlone ? 1 : 0, now.getTime())
    return row === undefined ? null : toUpload(row)
  }
}

export function prepareRenewUpload(database: DatabaseSync): (input: UploadLease & { readonly id: string }) => boolean {
  const update = database.prepare('UPDATE resumable_upload SET lease_until = ? WHERE id = ? AND lease_id = ?')
  return ({ id, leaseId, until }) => update.run(until.getTime(), id, leaseId).changes > 0
}

export function prepareNoteUploadHash(
  database: DatabaseSync,
): (input: { readonly id: string; readonly leaseId: string; readonly hash: string | null }) => boolean {
  const update = database.prepare('UPDATE resumable_upload SET hash = ? WHERE id = ? AND lease_id = ?')
  return ({ id, leaseId, hash }) => update.run(hash, id, leaseId).changes > 0
}

export function prepareReleaseUpload(
  database: DatabaseSync,
): (input: { readonly id: string; readonly leaseId: string; readonly assetId: string | null }) => void {
  const update = database.prepare(`
    UPDATE resumable_upload SET lease_id = NULL, lease_until = NULL, asset_id = coalesce(?, asset_id)
    WHERE id = ? AND lease_id = ?`)
  return ({ id, leaseId, assetId }) => void update.run(assetId, id, leaseId)
}

export function prepareRemoveUpload(
  database: DatabaseSync,
): (input: { readonly id: string; readonly leaseId: string }) => void {
  const remove = database.prepare('DELETE FROM resumable_upload WHERE id = ? AND lease_id = ?')
  return ({ id, leaseId }) => void remove.run(id, leaseId)
}

export function prepareHoldExpiredUploads(
  database: DatabaseSync,
): (input: UploadLease & { readonly limit: number }) => ResumableUpload[] {
  const update = prepareRows<UploadRow>(
    database,
    `UPDATE resumable_upload SET lease_id = ?1, lease_until = ?2 WHERE id IN (
       SELECT id FROM resumable_upload
       WHERE expires_at <= ?3 AND (lease_until IS NULL OR lease_until <= ?3) ORDER BY expires_at LIMIT ?4)
     RETURNING ${UPLOAD_COLUMNS}`,
  )
  return ({ leaseId, until, now, limit }) => update.all(leaseId, until.getTime(), now.getTime(), limit).map(toUpload)
}

export function prepareOpenUploadBytes(database: DatabaseSync): (accountId: string) => number {
  const sum = prepareRows<[number]>(
    database,
    `SELECT coalesce(sum(length_bytes), 0) FROM resumable_upload WHERE ${OPEN}`,
  )
  return (accountId) => sum.get(accountId)?.[0] ?? 0
}
