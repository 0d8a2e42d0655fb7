/** A fingerprint of what a picture shows: which of its 64 parts are brighter than the mean. Alike pictures differ in few. */

import { upscale } from '../../tensor/resize/upscale.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'

const SIDE = 8
const PARTS = SIDE * SIDE

/** Grey as Pillow makes it of 8-bit colours. */
function greyOf(red: number, green: number, blue: number): number {
  return (19_595 * red + 38_470 * green + 7_471 * blue + 32_768) >> 16
}

export type Fingerprint = readonly boolean[]

/** Of a batch of one. */
export function fingerprintOf(image: Tensor, work: PixelWork): Fingerprint {
  const small = upscale(image, { width: SIDE, height: SIDE, method: 'lanczos', crop: 'disabled' }, work)
  const channels = small.shape[3]
  const byte = (index: number) => Math.round(small.data[index] * 255)
  const greys = Array.from({ length: PARTS }, (_, part) => {
    const at = part * channels
    return channels < 3 ? byte(at) : greyOf(byte(at), byte(at + 1), byte(at + 2))
  })
  const mean = greys.reduce((sum, grey) => sum + grey, 0) / PARTS
  return greys.map((grey) => grey > mean)
}

/** 1 for the same fingerprint, 0 for opposites. */
export function likeness(a: Fingerprint, b: Fingerprint): number {
  return 1 - a.filter((bit, part) => bit !== b[part]).length / PARTS
}
