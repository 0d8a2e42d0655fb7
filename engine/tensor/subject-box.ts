/** The part of a picture that a mask marks, as a window of a wanted aspect around it; it may reach beyond the picture. */
import { byteOf } from './bytes.ts'
import type { PixelWork } from './tensor.ts'
import type { Window } from './window.ts'

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
