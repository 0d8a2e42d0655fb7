/**
 * A file of the library on the wire. The hosted service and ComfyUI's editor spell some members differently (`asset_hash` and `hash`,
 * `prompt_id` and `job_id`); both are sent. A member without a value is left out.
 */
import type { FastifyRequest } from 'fastify'
import { isActiveType } from '../../../../lib/files/mime.ts'
import { type JsonObject, type JsonValue, parseLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type { LibraryEntry } from '../../../domain/assets/library/library-entry.ts'
import { serviceAddressOf } from '../../kit/guards/routes.ts'

const SHOWN = /^(?:image|video|audio|model)\//
const THUMBNAIL_PIXELS = 512

type ToAssetView = (entry: LibraryEntry) => JsonObject

/** Addresses lead to where this request came in. */
export function createAssetView(request: FastifyRequest): ToAssetView {
  const { origin, mountPrefix } = serviceAddressOf(request)
  const contentOf = (id: string) => `${origin}${mountPrefix}/api/assets/${id}/content`

  return (entry) => {
    const { id, name, hash, sizeBytes, contentType, tags, previewId, loaderPath, filePath, jobId, isInstalled } = entry
    const isShown = !isInstalled && SHOWN.test(contentType) && !isActiveType(contentType)
    const shownId = previewId ?? (isShown ? id : null)
    const isPicture = previewId !== null || (isShown && contentType.startsWith('image/'))
    return withoutNulls({
      ...{ id, name, display_name: name, size: sizeBytes, mime_type: contentType, tags: [...tags] },
      hash: toWireHash(hash),
      asset_hash: toWireHash(hash),
      user_metadata: entry.metadata === null ? {} : parseLosslessJson(entry.metadata),
      preview_id: previewId,
      preview_url: shownId === null ? null : contentOf(shownId),
      thumbnail_url: shownId === null || !isPicture ? null : `${contentOf(shownId)}?res=${THUMBNAIL_PIXELS}`,
      loader_path: loaderPath,
      file_path: filePath,
      job_id: jobId,
      prompt_id: jobId,
      is_immutable: isInstalled,
      created_at: entry.createdAt.toISOString(),
      updated_at: entry.changedAt.toISOString(),
    })
  }
}

function toWireHash(hash: string | null): string | null {
  return hash === null ? null : `blake3:${hash}`
}

function withoutNulls(members: Readonly<Record<string, JsonValue>>): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null))
}
