/** An asset in the words of the wire, and the wire's spelling of a hash. Pure. */
import type { Asset } from '../../domain/assets/asset.ts'
import { type LinkBase, toContentUrl } from './links.ts'

// For records that never end; their URL works on, and clients ask again by then.
const URL_LIFETIME_MS = 24 * 60 * 60 * 1000
const WIRE_HASH = /^blake3:([0-9a-f]{64})$/i

/** `created_new` belongs to the answers that create; records of uploads have no `job_id`. */
export function toAssetView(
  asset: Asset,
  base: LinkBase,
  options: { readonly now: Date; readonly createdNew?: boolean },
) {
  const urlExpiresAt = asset.expiresAt ?? new Date(options.now.getTime() + URL_LIFETIME_MS)
  return {
    id: asset.id,
    hash: toWireHash(asset.hash),
    size_bytes: asset.sizeBytes,
    content_type: asset.contentType,
    file_path: asset.filePath,
    created_at: asset.createdAt.toISOString(),
    expires_at: asset.expiresAt?.toISOString() ?? null,
    url: toContentUrl(asset.id, base),
    url_expires_at: urlExpiresAt.toISOString(),
    ...(asset.jobId !== null && { job_id: asset.jobId }),
    ...(options.createdNew !== undefined && { created_new: options.createdNew }),
  }
}

export function toWireHash(hash: string): string {
  return `blake3:${hash}`
}

/** Plain lower-case hex, or null when the text is not a hash. The router has already undone `%3A`. */
export function readWireHash(text: string): string | null {
  return WIRE_HASH.exec(text)?.[1]?.toLowerCase() ?? null
}
