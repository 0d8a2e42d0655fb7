/** A picture as it comes back from one key frame of an H.264 video: colour at half size, blocks, quantiser, smoothed seams. */
import { type BytePlane, codePlane, type YuvPicture } from './intra-coding.ts'

const SIDE = 4
const ZEROS = new Array<number>(16).fill(0)
// Largest step across a seam, and next to it, that still counts as a seam; by quantiser.
const SEAM = Uint8Array.from([
  ...ZEROS,
  ...[4, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 17, 20, 22, 25, 28, 32, 36],
  ...[40, 45, 50, 56, 63, 71, 80, 90, 101, 113, 127, 144, 162, 182, 203, 226, 255, 255],
])
const SLOPE = Uint8Array.from([
  ...ZEROS,
  ...[2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 6, 6, 7, 7, 8, 8, 9, 9],
  ...[10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 16, 16, 17, 17, 18, 18],
])
// How far a pixel may move, for seams between blocks of a key frame.
const MOVE = Uint8Array.from([
  ...ZEROS,
  ...[0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3],
  ...[4, 4, 4, 5, 6, 6, 7, 8, 9, 10, 11, 13, 14, 16, 18, 20, 23, 25],
])

function clip(value: number, limit: number): number {
  return value < -limit ? -limit : value > limit ? limit : value
}

/** Smooths one line of pixels across a seam; `at` is the first pixel behind it, `step` leads from pixel to pixel. */
function smooth(data: Uint8ClampedArray, at: number, { step, quantiser }: { step: number; quantiser: number }): void {
  const p1 = data[at - 2 * step]
  const p0 = data[at - step]
  const q0 = data[at]
  const q1 = data[at + step]
  const slope = SLOPE[quantiser]
  if (Math.abs(p0 - q0) >= SEAM[quantiser] || Math.abs(p1 - p0) >= slope || Math.abs(q1 - q0) >= slope) return
  const p2 = data[at - 3 * step]
  const q2 = data[at + 2 * step]
  const isFlatBefore = Math.abs(p2 - p0) < slope
  const isFlatBehind = Math.abs(q2 - q0) < slope
  const limit = MOVE[quantiser]
  const delta = clip(((q0 - p0) * 4 + (p1 - q1) + 4) >> 3, limit + (isFlatBefore ? 1 : 0) + (isFlatBehind ? 1 : 0))
  const middle = (p0 + q0 + 1) >> 1
  if (isFlatBefore) data[at - 2 * step] = p1 + clip((p2 + middle - 2 * p1) >> 1, limit)
  if (isFlatBehind) data[at + step] = q1 + clip((q2 + middle - 2 * q1) >> 1, limit)
  data[at - step] = p0 + delta
  data[at] = q0 - delta
}

/** H.264's filter over the seams of coded blocks: small steps are smoothed away, real edges stay. */
function deblock({ data, width, height }: BytePlane, quantiser: number, checkpoint: () => void): void {
  for (let y = 0; y < height; y++) {
    checkpoint()
    for (let x = SIDE; x < width; x += SIDE) smooth(data, y * width + x, { step: 1, quantiser })
  }
  for (let y = SIDE; y < height; y += SIDE) {
    checkpoint()
    for (let x = 0; x < width; x++) smooth(data, y * width + x, { step: width, quantiser })
  }
}

const BLOCK = 4
const MAX_QUANTISER = 51
// Encoders code the first frame finer than its rate factor says, by a factor of 1.4: 6·log2(1.4) steps of the quantiser.
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
