/** Lays a smaller picture over a larger one, through a mask: out = source * m + destination * (1 - m) where they meet. */
import type { PixelWork } from '../tensor.ts'
import { mixRow } from './blend.ts'

/** Pictures whose pixels have their channels side by side; a plane has one channel. */
export interface Picture {
  readonly data: Float32Array
  readonly start: number
  readonly width: number
  readonly height: number
}

export interface Paste {
  /** Is written to; already holds the destination. */
  readonly target: Picture
  readonly source: Picture
  /** One value per pixel of the source; null pastes it whole. */
  readonly mask: Picture | null
  readonly channels: number
  /** Where the source's first pixel goes; not negative. */
  readonly x: number
  readonly y: number
}

/** What lies outside the target is left out. */
export function pastePicture(
  { target, source, mask, channels, x, y }: Paste,
  { checkpoint }: Pick<PixelWork, 'checkpoint'>,
): void {
  const width = Math.min(source.width, target.width - x)
  const height = Math.min(source.height, target.height - y)
  if (width <= 0) return
  for (let row = 0; row < height; row++) {
    checkpoint()
    const from = source.start + row * source.width * channels
    const to = target.start + ((y + row) * target.width + x) * channels
    if (mask === null) {
      target.data.set(source.data.subarray(from, from + width * channels), to)
      continue
    }
    const weights = mask.start + row * mask.width
    mixRow(target.data.subarray(to), source.data.subarray(from), {
      weights: mask.data.subarray(weights, weights + width),
      channels,
    })
  }
}
