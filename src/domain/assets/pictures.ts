/** What is done to pictures outside of workflows: previews, single channels, masks, other formats. Decoding belongs to an adapter. */
export type PreviewFormat = 'webp' | 'jpeg'

export type PictureFormat = 'png' | 'jpeg' | 'webp'

export interface Picture {
  readonly bytes: Uint8Array
  readonly contentType: string
}

export interface SizedPicture extends Picture {
  readonly width: number
  readonly height: number
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
  /**
   * The picture in this format; `quality` from 0 to 100, for those that lose something. The very bytes where it is in the format already
   * and no quality is asked for, or where no format is. In a JPEG what was transparent is white.
   */
  convert(
    source: Uint8Array,
    options: { readonly format: PictureFormat | null; readonly quality: number | null },
  ): Promise<SizedPicture>
  /**
   * A mask for every reader of masks, out of one whose transparent pixels mean "here": transparent there as before, and white there on
   * black for those that look at colours. null: it has no alpha.
   */
  toMask(source: Uint8Array): Promise<Picture | null>
}
