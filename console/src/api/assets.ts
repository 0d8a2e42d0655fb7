/** Files that the account uploaded. */
import { getJson, request, send } from './client.ts'

export interface AssetRow {
  readonly asset_id: string
  readonly name: string
  readonly content_type: string
  readonly size_bytes: number
  readonly created_at: string
  readonly expires_at: string | null
  readonly url: string
}

export interface AssetPage {
  readonly assets: readonly AssetRow[]
  readonly next_cursor: string | null
}

/** The newest of each name, the newest first. */
export function listAssets(query: URLSearchParams, signal?: AbortSignal): Promise<AssetPage> {
  return getJson<AssetPage>(`/console/v1/assets?${query}`, signal)
}

export function removeAsset(id: string): Promise<null> {
  return send('DELETE', `/api/v2/assets/${encodeURIComponent(id)}`)
}

/** Characters that the service takes in names of files. */
function safeName(name: string): string {
  const cleaned = name.replaceAll(/[^\w.\- ()]+/g, '_').replace(/^\.+/, '')
  return cleaned === '' ? 'file' : cleaned.slice(-120)
}

// Larger files go on where they were after a broken line.
const IN_PIECES_FROM_BYTES = 64 * 1024 * 1024

export async function uploadFile(file: File): Promise<{ readonly id: string; readonly name: string }> {
  const contentType = file.type === '' ? 'application/octet-stream' : file.type
  const filePath = safeName(file.name)
  if (file.size > IN_PIECES_FROM_BYTES) {
    const { uploadInPieces } = await import('./upload-in-pieces.ts')
    return { id: await uploadInPieces(file, { file_path: filePath, content_type: contentType }), name: file.name }
  }
  const form = new FormData()
  form.append('content_type', contentType)
  form.append('file_path', filePath)
  form.append('file', file)
  const response = await request('/api/v2/assets', { method: 'POST', body: form })
  const { id } = (await response.json()) as { id: string }
  return { id, name: file.name }
}

/** What stands in a workflow for an asset. */
export function assetReference(id: string): string {
  return JSON.stringify({ __type: 'core/ASSET', info: { id } })
}
