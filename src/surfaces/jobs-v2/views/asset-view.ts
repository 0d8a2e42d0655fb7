/** An asset in the words of the wire, and the wire's spelling of a hash. Pure. */
import type { Asset } from '../../../domain/assets/asset.ts'
import type { ContentLink, LinkedAsset } from './links.ts'

const WIRE_HASH = /^blake3:([0-9a-f]{64})$/i

/** `created_new` belongs to the answers that create; records of uploads have no `job_id`. */
export function toAssetView(asset: Asset, link: ContentLink, options: { readonly createdNew?: boolean } = {}) {
  return {
    id: asset.id,
    hash: toWireHash(asset.hash),
    size_bytes: asset.sizeBytes,
    content_type: asset.contentType,
    file_path: asset.filePath,
    created_at: asset.createdAt.toISOString(),
    expires_at: asset.expiresAt?.toISOString() ?? null,
    url: link.url,
    url_expires_at: link.expiresAt.toISOString(),
    ...(asset.jobId !== null && { job_id: asset.jobId }),
    ...(options.createdNew !== undefined && { created_new: options.createdNew }),
  }
}

/** What a link to the content of a record needs to know of it. */
export function toLinked({ id, accountId, expiresAt }: Asset): LinkedAsset {
  return { assetId: id, accountId, endsAt: expiresAt }
}

export function toWireHash(hash: string): string {
  return `blake3:${hash}`
}

/** Plain lower-case hex, or null when the text is not a hash. The router has already undone `%3A`. */
export function readWireHash(text: string): string | null {
  return WIRE_HASH.exec(text)?.[1]?.toLowerCase() ?? null
}
