/** Makes two images have equally many channels: the second loses what is too much and gets an opaque alpha if it lacks one. */
import { inBlocks } from '../map-pixels.ts'
import type { PixelWork, Tensor } from '../tensor.ts'

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
