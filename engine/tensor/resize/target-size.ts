/** Sizes that keep an aspect, rounded as Python rounds. */
import { roundHalfEven } from '../../../lib/python/numbers.ts'

export interface Size {
  readonly width: number
  readonly height: number
}

export function longerSideTo({ width, height }: Size, side: number): Size {
  if (height > width) return { width: roundHalfEven((width / height) * side), height: side }
  if (width > height) return { width: side, height: roundHalfEven((height / width) * side) }
  return { width: side, height: side }
}

export function shorterSideTo({ width, height }: Size, side: number): Size {
  if (height < width) return { width: roundHalfEven((width / height) * side), height: side }
  if (width < height) return { width: side, height: roundHalfEven((height / width) * side) }
  return { width: side, height: side }
}

export function scaledBy({ width, height }: Size, factor: number): Size {
  return { width: roundHalfEven(width * factor), height: roundHalfEven(height * factor) }
}

/** 0 for one side keeps the aspect; null when both are 0, which means the size as it is. No side gets shorter than `least`. */
export function withOpenSide(old: Size, wanted: Size, least = 1): Size | null {
  if (wanted.width === 0 && wanted.height === 0) return null
  const [width, height] = [Math.max(least, wanted.width), Math.max(least, wanted.height)]
  if (wanted.width === 0) return { width: Math.max(least, roundHalfEven((old.width * height) / old.height)), height }
  if (wanted.height === 0) return { width, height: Math.max(least, roundHalfEven((old.height * width) / old.width)) }
  return { width, height }
}
