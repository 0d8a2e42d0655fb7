/** How an image is cut into tiles that overlap: row by row, the last of each row and column moved back inside. */
import { roundHalfEven } from './resize/upscale.ts'
import type { Window } from './window.ts'

export interface TileSize {
  readonly width: number
  readonly height: number
  readonly overlap: number
}

/** Starts along one axis, with the length of a tile there. */
function startsAlong(length: number, tile: number, overlap: number): { starts: number[]; length: number } {
  // However large the overlap, a tile brings at least a quarter of itself.
  const stride = roundHalfEven(Math.max(tile * 0.25, tile - overlap))
  const starts: number[] = []
  for (let at = 0; at < length; at += stride) {
    const end = Math.min(at + tile, length)
    starts.push(Math.max(0, end - tile))
    if (end >= length) break
  }
  return { starts, length: Math.min(tile, length) }
}

export function tileGrid(size: { readonly width: number; readonly height: number }, tile: TileSize): Window[] {
  const across = startsAlong(size.width, tile.width, tile.overlap)
  const down = startsAlong(size.height, tile.height, tile.overlap)
  return down.starts.flatMap((y) => across.starts.map((x) => ({ x, y, width: across.length, height: down.length })))
}
