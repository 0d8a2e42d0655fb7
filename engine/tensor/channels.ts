/** Channels of images: one of them as a mask, some of them as an image, or more of them. */
import { runRows } from './rows/run-rows.ts'
import { toValueJob, type ValueChange } from './rows/value-rows.ts'
import { type PixelWork, type Tensor, viewOf } from './tensor.ts'

// Element-wise work on tensors, in blocks between which a cancelled run is noticed.

// A few hundred microseconds of work: short against any deadline, long against the price of looking at the flag.
export const BLOCK_ELEMENTS = 262_144

/** Calls `work` with [from, to) ranges that together cover `count` elements. */
export function inBlocks(count: number, checkpoint: () => void, work: (from: number, to: number) => void): void {
  for (let from = 0; from < count; from += BLOCK_ELEMENTS) {
    checkpoint()
    work(from, Math.min(from + BLOCK_ELEMENTS, count))
  }
}

export function clampToUnit(value: number): number {
  return value < 0 ? 0 : value > 1 ? 1 : value
}

/** A new tensor of the same shape; `fill` writes the elements from..to-1 of it. */
export function mapBlocks(
  source: Tensor,
  { allocate, checkpoint }: PixelWork,
  fill: (from: Float32Array, to: Float32Array, range: { readonly start: number; readonly end: number }) => void,
): Tensor {
  const result = allocate(source.shape)
  inBlocks(source.data.length, checkpoint, (start, end) => fill(source.data, result.data, { start, end }))
  return result
}

/** The same for changes that have a name: several threads can share those. */
export function changeValues(source: Tensor, change: ValueChange, work: PixelWork): Tensor {
  const result = work.allocate(source.shape)
  runRows(toValueJob(change, source.data, result.data), work)
  return result
}

const pixelsOf = ({ shape }: Tensor) => shape[0] * shape[1] * shape[2]

/** One channel as a mask; `isInverted` gives 1 - x. */
export function takeChannel(
  image: Tensor,
  { channel, isInverted = false }: { readonly channel: number; readonly isInverted?: boolean },
  { allocate, checkpoint }: PixelWork,
): Tensor {
  const [batch, height, width, channels] = image.shape
  const result = allocate([batch, height, width])
  const [from, to] = [image.data, result.data]
  inBlocks(to.length, checkpoint, (start, end) => {
    if (isInverted) for (let i = start; i < end; i++) to[i] = 1 - from[i * channels + channel]
    else for (let i = start; i < end; i++) to[i] = from[i * channels + channel]
  })
  return result
}

/** The usual case, written out: a loop over three channels takes twice as long. Missing colours are 1. */
function takeColors(
  from: Float32Array,
  to: Float32Array,
  { start, end, channels }: { readonly start: number; readonly end: number; readonly channels: number },
): void {
  for (let pixel = start, at = start * channels, out = start * 3; pixel < end; pixel++, at += channels, out += 3) {
    to[out] = from[at]
    to[out + 1] = channels > 1 ? from[at + 1] : 1
    to[out + 2] = channels > 2 ? from[at + 2] : 1
  }
}

/** Images of exactly `count` channels: further ones are dropped, missing ones are 1 (opaque). */
export function setChannelCount(image: Tensor, count: number, { allocate, checkpoint }: PixelWork): Tensor {
  const [batch, height, width, channels] = image.shape
  if (channels === count) return image
  const result = allocate([batch, height, width, count])
  const [from, to] = [image.data, result.data]
  const copied = Math.min(channels, count)
  inBlocks(pixelsOf(image), checkpoint, (start, end) => {
    if (count === 3) {
      takeColors(from, to, { start, end, channels })
      return
    }
    for (let pixel = start; pixel < end; pixel++) {
      for (let c = 0; c < copied; c++) to[pixel * count + c] = from[pixel * channels + c]
      for (let c = copied; c < count; c++) to[pixel * count + c] = 1
    }
  })
  return result
}

/** Makes the follower have as many channels as the leader: it loses surplus ones, and gets one opaque alpha if it lacks any. */
export function alignChannels(leader: Tensor, follower: Tensor, { allocate, checkpoint }: PixelWork): Tensor {
  const wanted = leader.shape[3]
  const given = follower.shape[3]
  if (wanted === given) return follower
  // A missing channel is added once, as ComfyUI does: an image of two channels less stays unlike.
  const channels = wanted < given ? wanted : given + 1
  const [batch, height, width] = follower.shape
  const result = allocate([batch, height, width, channels])
  const copied = Math.min(channels, given)
  inBlocks(batch * height * width, checkpoint, (start, end) => {
    for (let pixel = start; pixel < end; pixel++) {
      for (let c = 0; c < copied; c++) result.data[pixel * channels + c] = follower.data[pixel * given + c]
      if (channels > given) result.data[pixel * channels + given] = 1
    }
  })
  return result
}

// Rectangles of images: cut out of every frame, or laid onto a canvas. Rows are copied whole.

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
