/** Rectangles of images: cut out of every frame, or laid onto a canvas. Rows are copied whole. */
import { changeValues } from './map-pixels.ts'
import { type PixelWork, type Tensor, viewOf } from './tensor.ts'

export interface Window {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** The same window of every frame, which must lie inside. */
export function cutWindow(image: Tensor, window: Window, { allocate, checkpoint }: PixelWork): Tensor {
  const { batch, height, width, channels, data } = viewOf(image)
  const shape = [batch, window.height, window.width, channels].slice(0, image.shape.length)
  const result = allocate(shape)
  const rowLength = window.width * channels
  for (let row = 0; row < batch * window.height; row++) {
    checkpoint()
    const sourceRow = Math.floor(row / window.height) * height + window.y + (row % window.height)
    const from = (sourceRow * width + window.x) * channels
    result.data.set(data.subarray(from, from + rowLength), row * rowLength)
  }
  return result
}

/** What `sequence[start:end]` takes of `size` elements, as offset and length. */
export function sliceOf(start: number, end: number, size: number): { readonly from: number; readonly count: number } {
  const bounded = (index: number) => Math.max(0, Math.min(index < 0 ? index + size : index, size))
  const from = bounded(start)
  return { from, count: Math.max(0, bounded(end) - from) }
}

interface Placement {
  readonly x: number
  readonly y: number
  /** Which frame of the source goes onto frame `index` of the canvas. */
  frameOf(index: number): number
}

/** Copies frames into a canvas of as many channels that is large enough; every frame of the canvas gets one. */
export function paste(
  canvas: Tensor,
  source: Tensor,
  { x, y, frameOf, checkpoint }: Placement & Pick<PixelWork, 'checkpoint'>,
): void {
  const to = viewOf(canvas)
  const from = viewOf(source)
  const rowLength = from.width * from.channels
  for (let index = 0; index < to.batch; index++) {
    const frame = frameOf(index)
    for (let row = 0; row < from.height; row++) {
      checkpoint()
      const at = (frame * from.height + row) * rowLength
      const target = ((index * to.height + y + row) * to.width + x) * to.channels
      to.data.set(from.data.subarray(at, at + rowLength), target)
    }
  }
}

/** Every value as 8 bit would have kept it: n/255. */
export function throughBytes(image: Tensor, work: PixelWork): Tensor {
  return changeValues(image, { kind: 'through bytes' }, work)
}
