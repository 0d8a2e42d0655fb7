/** Uploads that can be continued. A lease may be lost with the server's machine; what an upload is, and what it has become, is durable. */
import type { UploadStore } from '../../../../domain/assets/resumable/upload-store.ts'
import {
  createUpload,
  findUpload,
  holdExpiredUploads,
  holdUpload,
  noteUploadHash,
  readOpenBytes,
  releaseUpload,
  removeUpload,
  renewUpload,
} from '../operations/assets/upload-rows.ts'
import type { StoreParts } from './store-parts.ts'

export function createUploadStore({ durable, relaxed, read, chore }: StoreParts): UploadStore {
  return {
    create: (upload, bounds) => durable.transaction((tx) => createUpload(tx, upload, bounds)),
    find: (accountId, id) => findUpload(read, accountId, id),
    hold: (id, lease) => relaxed.transaction((tx) => holdUpload(tx, id, lease)),
    renew: (id, lease) => relaxed.transaction((tx) => renewUpload(tx, id, lease), { isRepeatable: true }),
    noteHash: (id, leaseId, hash) =>
      durable.transaction((tx) => noteUploadHash(tx, { id, leaseId, hash }), { isRepeatable: true }),
    release: (id, leaseId, { assetId }) =>
      durable.transaction((tx) => releaseUpload(tx, { id, leaseId, assetId }), { isRepeatable: true }),
    remove: (id, leaseId) => durable.transaction((tx) => removeUpload(tx, id, leaseId), { isRepeatable: true }),
    holdExpired: (lease, limit) => chore.transaction((tx) => holdExpiredUploads(tx, lease, limit)),
    openBytes: (accountId) => readOpenBytes(read, accountId),
  }
}
