/** Where the eye stands over the graph: moving, zooming, fitting, and what lies under a point. Pure. */
import type { Box } from './layout.ts'

export interface Camera {
  /** The point of the graph at the top left corner. */
  readonly x: number
  readonly y: number
  readonly scale: number
}

const MIN_SCALE = 0.02
const MAX_SCALE = 3
const MARGIN = 24

export function fit(boxes: readonly Box[], size: { readonly w: number; readonly h: number }): Camera {
  if (boxes.length === 0 || size.w === 0) return { x: 0, y: 0, scale: 1 }
  let [left, top, right, bottom] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, -Infinity, -Infinity]
  for (const { x, y, w, h } of boxes) {
    left = Math.min(left, x)
    top = Math.min(top, y)
    right = Math.max(right, x + w)
    bottom = Math.max(bottom, y + h)
  }
  const scale = clamp(
    Math.min((size.w - 2 * MARGIN) / Math.max(1, right - left), (size.h - 2 * MARGIN) / Math.max(1, bottom - top), 1.2),
  )
  return {
    x: (left + right) / 2 - size.w / 2 / scale,
    y: (top + bottom) / 2 - size.h / 2 / scale,
    scale,
  }
}

/** The point under the pointer stays under it. */
export function zoomAt(camera: Camera, factor: number, at: { readonly x: number; readonly y: number }): Camera {
  const scale = clamp(camera.scale * factor)
  return {
    x: camera.x + at.x / camera.scale - at.x / scale,
    y: camera.y + at.y / camera.scale - at.y / scale,
    scale,
  }
}

export function moveBy(camera: Camera, dx: number, dy: number): Camera {
  return { ...camera, x: camera.x - dx / camera.scale, y: camera.y - dy / camera.scale }
}

/** So that the box stands in the middle, and is large enough to read. */
export function lookAt(camera: Camera, box: Box, size: { readonly w: number; readonly h: number }): Camera {
  const scale = clamp(Math.max(camera.scale, 0.7))
  return { x: box.x + box.w / 2 - size.w / 2 / scale, y: box.y + box.h / 2 - size.h / 2 / scale, scale }
}

export function hit(camera: Camera, boxes: readonly Box[], at: { readonly x: number; readonly y: number }): number {
  const x = camera.x + at.x / camera.scale
  const y = camera.y + at.y / camera.scale
  return boxes.findLastIndex((box) => x >= box.x && x <= box.x + box.w && y >= box.y && y <= box.y + box.h)
}

function clamp(scale: number): number {
  return Math.min(MAX_SCALE, Math.max(MIN_SCALE, scale))
}
