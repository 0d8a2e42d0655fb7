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

export async function uploadFile(file: File): Promise<{ readonly id: string; readonly name: string }> {
  const form = new FormData()
  form.append('content_type', file.type === '' ? 'application/octet-stream' : file.type)
  form.append('file_path', safeName(file.name))
  form.append('file', file)
  const response = await request('/api/v2/assets', { method: 'POST', body: form })
  const { id } = (await response.json()) as { id: string }
  return { id, name: file.name }
}

/** What stands in a workflow for an asset. */
export function assetReference(id: string): string {
  return JSON.stringify({ __type: 'core/ASSET', info: { id } })
}
