/** Quarter turns and mirror images. Rotation walks small squares, so that neither side misses the cache on every pixel. */
import { byteOf } from './bytes.ts'
import type { Window } from './channels.ts'
import { type PixelWork, type Tensor, viewOf } from './tensor.ts'

const SQUARE = 32

/** Where the pixel (0, 0) of a frame goes, and how far one step right or down in the source moves in the target. */
interface Course {
  readonly start: number
  readonly perColumn: number
  readonly perRow: number
}

function walk(
  source: Tensor,
  target: Tensor,
  { course, checkpoint }: { course: Course } & Pick<PixelWork, 'checkpoint'>,
) {
  const { batch, height, width, channels, data } = viewOf(source)
  const frame = height * width * channels
  const { start, perColumn, perRow } = course
  for (let index = 0; index < batch; index++) {
    const from = index * frame
    const to = from + start * channels
    for (let top = 0; top < height; top += SQUARE) {
      checkpoint()
      const bottom = Math.min(top + SQUARE, height)
      for (let left = 0; left < width; left += SQUARE) {
        const right = Math.min(left + SQUARE, width)
        for (let y = top; y < bottom; y++) {
          let at = from + (y * width + left) * channels
          let out = to + (y * perRow + left * perColumn) * channels
          for (let x = left; x < right; x++, out += perColumn * channels) {
            for (let c = 0; c < channels; c++) target.data[out + c] = data[at++]
          }
        }
      }
    }
  }
}

export type QuarterTurns = 1 | 2 | 3

/** Clockwise. */
export function rotate(image: Tensor, quarterTurns: QuarterTurns, { allocate, checkpoint }: PixelWork): Tensor {
  const [batch, height, width, channels] = image.shape
  const courses: Readonly<Record<QuarterTurns, Course>> = {
    1: { start: height - 1, perColumn: height, perRow: -1 },
    2: { start: height * width - 1, perColumn: -1, perRow: -width },
    3: { start: (width - 1) * height, perColumn: -height, perRow: 1 },
  }
  const result = allocate(quarterTurns === 2 ? image.shape : [batch, width, height, channels])
  walk(image, result, { course: courses[quarterTurns], checkpoint })
  return result
}

export function mirrorLeftRight(image: Tensor, { allocate, checkpoint }: PixelWork): Tensor {
  const width = image.shape[2]
  const result = allocate(image.shape)
  walk(image, result, { course: { start: width - 1, perColumn: -1, perRow: width }, checkpoint })
  return result
}

export function mirrorUpDown(image: Tensor, { allocate, checkpoint }: PixelWork): Tensor {
  const { batch, height, width, channels, data } = viewOf(image)
  const result = allocate(image.shape)
  const rowLength = width * channels
  for (let index = 0; index < batch; index++) {
    for (let y = 0; y < height; y++) {
      checkpoint()
      const from = (index * height + y) * rowLength
      result.data.set(data.subarray(from, from + rowLength), (index * height + height - 1 - y) * rowLength)
    }
  }
  return result
}

// The part of a picture that a mask marks, as a window of a wanted aspect around it; it may reach beyond the picture.

interface Plane extends Pick<PixelWork, 'checkpoint'> {
  readonly data: Float32Array
  readonly width: number
  readonly height: number
}

// Clearly marked: above 204 of 255.
const MARKED = 205

/** The smallest window with every pixel that is clearly marked (or clearly not); null when there is none. */
export function markedBox({ data, width, height, checkpoint }: Plane, isInverted: boolean): Window | null {
  let [left, right, top, bottom] = [width, -1, height, -1]
  for (let y = 0, at = 0; y < height; y++) {
    checkpoint()
    for (let x = 0; x < width; x++, at++) {
      const level = byteOf(data[at])
      if ((isInverted ? 255 - level : level) < MARKED) continue
      if (x < left) left = x
      if (x > right) right = x
      if (y < top) top = y
      bottom = y
    }
  }
  return right < 0 ? null : { x: left, y: top, width: right - left + 1, height: bottom - top + 1 }
}

/** Grown around its middle to an aspect, then by a factor; sides come out even. */
export function growToAspect(box: Window, { aspect, factor }: { aspect: number; factor: number }): Window {
  const isWide = box.width / box.height >= aspect
  const wide = isWide ? box.width : box.height * aspect
  const high = isWide ? box.width / aspect : box.height
  const halfWidth = Math.ceil(Math.trunc(wide * factor) / 2)
  const halfHeight = Math.ceil(Math.trunc(high * factor) / 2)
  // The middle lies between the first and the last pixel; coordinates drop their fraction towards zero.
  const x = Math.trunc((2 * box.x + box.width - 1) / 2 - halfWidth)
  const y = Math.trunc((2 * box.y + box.height - 1) / 2 - halfHeight)
  return { x, y, width: 2 * halfWidth, height: 2 * halfHeight }
}

function meanOver(plane: Plane, { x, y, width, height }: Window): number {
  let sum = 0
  for (let row = y; row < y + height; row++) {
    plane.checkpoint()
    for (let col = x; col < x + width; col++) sum += plane.data[row * plane.width + col]
  }
  return sum / (width * height)
}

/** A mask whose border is marked and whose middle is not has probably been given the wrong way round. */
export function looksInverted(plane: Plane): boolean {
  const { width, height } = plane
  const sides = [
    { x: 0, y: 0, width, height: 1 },
    { x: 0, y: height - 1, width, height: 1 },
    { x: 0, y: 0, width: 1, height },
    { x: width - 1, y: 0, width: 1, height },
  ]
  const sum = sides.reduce((total, side) => total + meanOver(plane, side) * side.width * side.height, 0)
  const [x, y] = [Math.floor(width / 4), Math.floor(height / 4)]
  const middle = { x, y, width: width - 2 * x, height: height - 2 * y }
  return sum / (2 * (width + height)) > 0.5 && meanOver(plane, middle) < 0.5
}
