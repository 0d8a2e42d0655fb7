/** Uploads that can be continued, as the main thread sees them: every method only names its operation. */
import type { UploadStore } from '../../../../domain/assets/resumable/upload-store.ts'
import type { StoreChannels } from './store-channels.ts'

export function createUploadStore({ write, read }: StoreChannels): UploadStore {
  return {
    create: (upload, bounds) => write.call('createUpload', { upload, bounds }),
    find: (accountId, id) => read.call('findUpload', { accountId, id }),
    hold: (id, lease) => write.call('holdUpload', { id, ...lease }),
    renew: (id, lease) => write.call('renewUpload', { id, ...lease }),
    noteHash: (id, leaseId, hash) => write.call('noteUploadHash', { id, leaseId, hash }),
    release: (id, leaseId, { assetId }) => write.call('releaseUpload', { id, leaseId, assetId }),
    remove: (id, leaseId) => write.call('removeUpload', { id, leaseId }),
    holdExpired: (lease, limit) => write.call('holdExpiredUploads', { ...lease, limit }),
    openBytes: (accountId) => read.call('openUploadBytes', accountId),
  }
}
