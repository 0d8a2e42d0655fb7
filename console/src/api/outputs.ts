/** Outputs over all jobs. */
import { getJson } from './client.ts'

export interface GalleryOutput {
  readonly asset_id: string
  readonly job_id: string
  readonly job_title: string
  readonly node_id: string
  readonly name: string
  readonly type: string
  readonly content_type: string
  readonly size_bytes: number
  readonly created_at: string
  readonly url: string
}

export interface OutputPage {
  readonly outputs: readonly GalleryOutput[]
  readonly next_cursor: string | null
}

export function listOutputs(query: URLSearchParams, signal?: AbortSignal): Promise<OutputPage> {
  return getJson<OutputPage>(`/console/v1/outputs?${query}`, signal)
}
