/** The messages about files of the library: how far a fetch is, and that the lists of files may be read anew. */
import type { AssetImport } from '../../../domain/assets/library/import-store.ts'
import { toMessage } from './run-messages.ts'

/** Of a file whose size is not known, the progress is 0 until it is complete. */
export function importMessage(task: AssetImport): string {
  const { id, name, status, bytesTotal, bytesDone, assetId, error } = task
  const share = bytesTotal === null || bytesTotal === 0 ? 0 : Math.min(100, Math.floor((100 * bytesDone) / bytesTotal))
  return toMessage('asset_download', {
    ...{ task_id: id, asset_name: name, bytes_total: bytesTotal ?? 0, bytes_downloaded: bytesDone },
    ...{ progress: status === 'completed' ? 100 : share, status },
    ...(assetId !== null && { asset_id: assetId }),
    ...(error !== null && { error: error.message }),
  })
}

/** Each of ComfyUI's messages at the end of a look at its folders; different parts of the editor wait for different ones. */
export function seededMessages(): readonly string[] {
  const counts = { roots: ['models'], created: 0, skipped: 0, total: 0 }
  return [
    toMessage('assets.seed.fast_complete', counts),
    toMessage('assets.seed.completed', { ...counts, phase: 'fast' }),
  ]
}
