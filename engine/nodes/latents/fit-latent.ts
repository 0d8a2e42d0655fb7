/** Brings one latent into the shape of another, for nodes that compute with two. */
import { fitBatch } from '../../tensor/batch.ts'
import { planeSize, resizePlanes } from '../../tensor/resize/resize-planes.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'

/** In the height and width of the leader; the batch stays. */
export function fitPlanes(leader: Tensor, follower: Tensor, work: PixelWork): Tensor {
  return resizePlanes(follower, { ...planeSize(leader), method: 'bilinear', crop: 'center' }, work)
}

/** In the leader's height, width and batch. */
export function fitLatent(leader: Tensor, follower: Tensor, work: PixelWork): Tensor {
  return fitBatch(fitPlanes(leader, follower, work), leader.shape[0], work)
}
