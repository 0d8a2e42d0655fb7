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

/** 0 for one side keeps the aspect; null when both are 0, which means the size as it is. */
export function withOpenSide(old: Size, { width, height }: Size): Size | null {
  if (width === 0 && height === 0) return null
  if (width === 0) return { width: Math.max(1, roundHalfEven((old.width * height) / old.height)), height }
  if (height === 0) return { width, height: Math.max(1, roundHalfEven((old.height * width) / old.width)) }
  return { width, height }
}
