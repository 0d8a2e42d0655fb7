/** Two images with transparency laid over each other in the modes of Porter and Duff. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { combo, image, mask } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { sliceBatch } from '../../tensor/batch-axis.ts'
import { composePorterDuff, PORTER_DUFF_MODES } from '../../tensor/compose/porter-duff.ts'
import { inBlocks } from '../../tensor/map-pixels.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'
import { asMaskBatch } from './mask-kinds.ts'

interface Fit {
  readonly batch: number
  readonly width: number
  readonly height: number
}

/** The first `batch` pictures in another size. Nothing is clamped: a bicubic curve may leave 0..1. */
function fit(tensor: Tensor, { batch, width, height }: Fit, work: PixelWork): Tensor {
  return upscale(sliceBatch(tensor, 0, batch), { width, height, method: 'bicubic', crop: 'center' }, work)
}

export const porterDuffImageComposite = defineNode({
  classType: 'PorterDuffImageComposite',
  displayName: 'Porter-Duff Image Composite',
  category: 'image/compositing',
  description: 'Lays a source over a destination, both with transparency, in one of eighteen modes.',
  style: 'schema',
  required: {
    source: image({}),
    source_alpha: mask({}),
    destination: image({}),
    destination_alpha: mask({}),
    mode: combo(PORTER_DUFF_MODES, { default: 'DST' }),
  },
  outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
  cost: ({ destination }) => costOf(destination.data.length),
  run({ source, source_alpha, destination, destination_alpha, mode }, context) {
    const masks = [asMaskBatch(source_alpha), asMaskBatch(destination_alpha)]
    const batch = Math.min(...[source, destination, ...masks].map((tensor) => tensor.shape[0]))
    const [, height, width, channels] = destination.shape
    // Upstream asserts this without a text.
    if (source.shape[3] !== channels) throw new NodeError('AssertionError', '')
    const wanted = { batch, width, height }
    const picture = {
      source: fit(source, wanted, context).data,
      sourceMask: fit(masks[0], wanted, context).data,
      destination: destination.data,
      destinationMask: fit(masks[1], wanted, context).data,
      channels,
    }
    const composed = context.allocate([batch, height, width, channels])
    const composedMask = context.allocate([batch, height, width])
    inBlocks(composedMask.data.length, context.checkpoint, (start, end) =>
      composePorterDuff({ ...picture, image: composed.data, mask: composedMask.data }, mode, { start, end }),
    )
    return { outputs: [composed, composedMask] }
  },
})
