/** Bytes that somebody may look at: an output or an upload. */
export interface MediaItem {
  readonly asset_id: string
  readonly name: string
  readonly content_type: string
  readonly size_bytes: number
  readonly url: string
}
