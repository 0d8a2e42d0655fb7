/** What is done to pictures outside of workflows: previews, single channels, masks. Decoding belongs to an adapter. */
export type PreviewFormat = 'webp' | 'jpeg'

export interface Picture {
  readonly bytes: Uint8Array
  readonly contentType: string
}

/** Each throws ServiceError `invalid_field` for bytes that are no picture, or one beyond the bounds. */
export interface Pictures {
  preview(
    source: Uint8Array,
    options: { readonly format: PreviewFormat; readonly quality: number; readonly fitPixels?: number },
  ): Promise<Picture>
  /** A PNG of the colours alone, or of the alpha alone over black. */
  channel(source: Uint8Array, channel: 'rgb' | 'a'): Promise<Picture>
  /** The original as a PNG with the alpha of the mask; both must have one size. Text in the original is kept. */
  replaceAlpha(original: Uint8Array, mask: Uint8Array): Promise<Picture>
}
