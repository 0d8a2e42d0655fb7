/** An output of a job or an asset, as far as showing it needs. */
export interface MediaItem {
  readonly asset_id: string
  readonly name: string
  readonly content_type: string
  readonly size_bytes: number
  readonly url: string
}
