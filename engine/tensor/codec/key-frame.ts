/** A picture as it comes back from one key frame of a video: colour at half size, blocks, quantiser, smoothed seams. */
import { deblock } from './deblocking.ts'
import { codePlane } from './intra-coding.ts'
import type { BytePlane, YuvPicture } from './yuv-planes.ts'

const BLOCK = 4
const MAX_QUANTISER = 51
// Encoders code the first frame finer than its rate factor says, by the cube root of two and a bit: 6·log2(1.4).
const KEY_FRAME_BONUS = 3
// Colour is quantised less coarsely than brightness, from here on.
const COLOR_QUANTISERS = [29, 30, 31, 32, 32, 33, 34, 34, 35, 35, 36, 36, 37, 37, 37, 38, 38, 38, 39, 39, 39, 39]
const FIRST_COLOR_QUANTISER = 30

/** The quantiser that an encoder would choose for a constant rate factor. */
export function quantiserFor(rateFactor: number): number {
  return Math.max(0, Math.min(MAX_QUANTISER, rateFactor) - KEY_FRAME_BONUS)
}

/** Edges repeated until the sides are whole blocks. */
function padded({ data, width, height }: BytePlane, checkpoint: () => void): BytePlane {
  const wide = Math.ceil(width / BLOCK) * BLOCK
  const high = Math.ceil(height / BLOCK) * BLOCK
  const result = new Uint8ClampedArray(wide * high)
  for (let y = 0; y < high; y++) {
    checkpoint()
    const row = Math.min(y, height - 1) * width
    for (let x = 0; x < wide; x++) result[y * wide + x] = data[row + Math.min(x, width - 1)]
  }
  return { width: wide, height: high, data: result }
}

function cut(plane: BytePlane, { width, height }: BytePlane): BytePlane {
  const data = new Uint8ClampedArray(width * height)
  for (let y = 0; y < height; y++) {
    data.set(plane.data.subarray(y * plane.width, y * plane.width + width), y * width)
  }
  return { width, height, data }
}

function throughCodec(plane: BytePlane, quantiser: number, checkpoint: () => void): BytePlane {
  const coded = padded(plane, checkpoint)
  codePlane(coded, quantiser, checkpoint)
  deblock(coded, quantiser, checkpoint)
  return cut(coded, plane)
}

export function throughKeyFrame(picture: YuvPicture, quantiser: number, checkpoint: () => void): YuvPicture {
  const ofColor = COLOR_QUANTISERS[quantiser - FIRST_COLOR_QUANTISER] ?? quantiser
  return {
    luma: throughCodec(picture.luma, quantiser, checkpoint),
    blueness: throughCodec(picture.blueness, ofColor, checkpoint),
    redness: throughCodec(picture.redness, ofColor, checkpoint),
  }
}
