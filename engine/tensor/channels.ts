/** Channels of images: one of them as a mask, some of them as an image, or more of them. */
import { inBlocks } from './map-pixels.ts'
import type { PixelWork, Tensor } from './tensor.ts'

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
