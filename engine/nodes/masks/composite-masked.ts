/** One picture, or one latent, laid over another where a mask allows it. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { boolean, type InputKind, image, int, MAX_RESOLUTION, mask } from '../../node/input-kinds.ts'
import { copyInto } from '../../tensor/batch-axis.ts'
import { broadcastShape, sizeMismatch } from '../../tensor/broadcast.ts'
import { alignChannels } from '../../tensor/channels.ts'
import { toCompositeJob } from '../../tensor/compose/composite-rows.ts'
import { type Picture, pastePicture } from '../../tensor/compose/paste.ts'
import { planeSize, resizePlanes } from '../../tensor/resize/resize-planes.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import { runRows } from '../../tensor/rows/run-rows.ts'
import { elementCount, type PixelWork, type Tensor, viewOf } from '../../tensor/tensor.ts'
import { LATENT_SCALE, latent } from '../latents/latent.ts'
import { asMaskBatch, offset } from './mask-kinds.ts'

const placement = (offsetOf: () => InputKind<number>) => ({
  x: offsetOf(),
  y: offsetOf(),
  resize_source: boolean({ default: false }),
})
const optional = { mask: mask({}) }

/** In the width and height of `to`. */
function stretch(tensor: Tensor, to: Tensor, work: PixelWork): Tensor {
  const { width, height } = viewOf(to)
  return upscale(tensor, { width, height, method: 'bilinear', crop: 'disabled' }, work)
}

export const imageCompositeMasked = defineNode({
  classType: 'ImageCompositeMasked',
  displayName: 'Image Composite Masked',
  category: 'image/compositing',
  description: 'Lays one image over another at a place, where a mask allows it.',
  style: 'schema',
  required: { destination: image({}), source: image({}), ...placement(offset) },
  optional,
  outputs: [{ type: 'IMAGE' }],
  cost: ({ destination, source }) => costOf(destination.data.length + source.data.length),
  run({ destination, source, x, y, resize_source: isResized, mask: given }, context) {
    const aligned = alignChannels(destination, source, context)
    const { channels } = viewOf(destination)
    // Upstream has the channels in front of height and width here.
    if (aligned.shape[3] !== channels) throw sizeMismatch(channels, aligned.shape[3], 1)
    const above = isResized ? stretch(aligned, destination, context) : aligned
    const weights = given === undefined ? null : viewOf(stretch(asMaskBatch(given), above, context))
    const result = context.allocate(destination.shape)
    const composite = { destination: viewOf(destination), source: viewOf(above), mask: weights, out: result.data, x, y }
    runRows(toCompositeJob(composite), context)
    return { outputs: [result] }
  },
})

const cellOffset = () => int({ default: 0, min: 0, max: MAX_RESOLUTION, step: 8 })

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
  required: { destination: latent({}), source: latent({}), ...placement(cellOffset) },
  optional,
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
