import { defineNode } from '../../node/define-node.ts'
import { costOf } from '../../node/image-cost.ts'
import { boolean, int, mask } from '../../node/input-kinds.ts'
import { copyInto } from '../../tensor/batch.ts'
import { broadcastShape } from '../../tensor/broadcast.ts'
import { type Picture, pastePicture } from '../../tensor/compose/paste.ts'
import { planeSize, resizePlanes } from '../../tensor/resize/resize-planes.ts'
import { elementCount, type Tensor } from '../../tensor/tensor.ts'
import { LATENT_SCALE, latent } from '../latents/latent.ts'
import { asMaskBatch } from './mask-batch.ts'

const MAX_SIDE = 16384
const place = () => int({ default: 0, min: 0, max: MAX_SIDE, step: 8 })

/** Plane `plane` of member `member`; both repeat from their start where there are fewer. */
function planeOf(tensor: Tensor, member: number, plane: number): Picture {
  const { width, height } = planeSize(tensor)
  const planes = elementCount(tensor.shape.slice(1, -2))
  const index = (member % tensor.shape[0]) * planes + (plane % planes)
  return { data: tensor.data, start: index * width * height, width, height }
}

export const latentCompositeMasked = defineNode({
  classType: 'LatentCompositeMasked',
  displayName: 'Latent Composite Masked',
  category: 'model/latent',
  description: 'Lays one latent over another at a place, where a mask allows it.',
  style: 'schema',
  required: {
    destination: latent({}),
    source: latent({}),
    x: place(),
    y: place(),
    resize_source: boolean({ default: false }),
  },
  optional: { mask: mask({}) },
  outputs: [{ type: 'LATENT' }],
  cost: ({ destination, source }) => costOf(destination.samples.data.length + source.samples.data.length),
  run({ destination, source, x, y, resize_source: isResized, mask: given }, context) {
    const { samples } = destination
    broadcastShape(samples.shape.slice(1, -2), source.samples.shape.slice(1, -2))
    const bilinear = { method: 'bilinear', crop: 'disabled' } as const
    const above = isResized
      ? resizePlanes(source.samples, { ...planeSize(samples), ...bilinear }, context)
      : source.samples
    const weights =
      given === undefined ? null : resizePlanes(asMaskBatch(given), { ...planeSize(above), ...bilinear }, context)
    const result = context.allocate(samples.shape)
    copyInto(result.data, 0, samples.data, context.checkpoint)
    const [left, top] = [Math.floor(x / LATENT_SCALE), Math.floor(y / LATENT_SCALE)]
    const planes = elementCount(samples.shape.slice(1, -2))
    for (let index = 0; index < samples.shape[0] * planes; index++) {
      const [member, plane] = [Math.floor(index / planes), index % planes]
      const target = planeOf(result, member, plane)
      const maskPart = weights === null ? null : planeOf(weights, member, 0)
      const paste = { target, source: planeOf(above, member, plane), mask: maskPart, channels: 1, x: left, y: top }
      pastePicture(paste, context)
    }
    return { outputs: [{ ...destination, samples: result }] }
  },
})
