/** The batch axis of images. */
import { costOf, defineListNode, defineNode } from '../../node/define-node.ts'
import { autogrow } from '../../node/dynamic-kinds.ts'
import { defineDynamicNode } from '../../node/dynamic-node.ts'
import { image, int, MAX_RESOLUTION } from '../../node/input-kinds.ts'
import { concatenate, repeatBatch, sliceBatch, splitBatches } from '../../tensor/batch-axis.ts'
import { setChannelCount } from '../../tensor/channels.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'

const outputs = [{ type: 'IMAGE' }] as const
const facts = { category: 'image/batch', style: 'schema', outputs } as const

/** One batch in the size of the first image and with the most channels of all; a missing alpha is opaque. */
function joinImages(images: readonly Tensor[], work: PixelWork): Tensor {
  const [, height, width] = images[0].shape
  const channels = Math.max(...images.map(({ shape }) => shape[3]))
  const fitted = images.map((batch) => {
    const sized = upscale(batch, { width, height, method: 'bilinear', crop: 'center' }, work)
    return setChannelCount(sized, channels, work)
  })
  return concatenate(fitted, work)
}

export const imageBatch = defineNode({
  classType: 'ImageBatch',
  displayName: 'Batch Images (DEPRECATED)',
  category: 'image/batch',
  description: 'Joins two images into one batch, in the size of the first.',
  style: 'classic',
  deprecated: true,
  required: { image1: image(), image2: image() },
  outputs,
  cost: ({ image1, image2 }) => costOf(image1.data.length + image2.data.length),
  run: ({ image1, image2 }, context) => ({ outputs: [joinImages([image1, image2], context)] }),
})

export const batchImages = defineDynamicNode({
  ...facts,
  classType: 'BatchImagesNode',
  displayName: 'Batch Images',
  description: 'Joins images into one batch, in the size of the first.',
  required: {
    images: autogrow({ member: 'image', kind: image({}), naming: { prefix: 'image', max: 50 }, min: 1 }),
  },
  cost: ({ images }) => costOf(Object.values(images).reduce((sum, { data }) => sum + data.length, 0)),
  run: ({ images }, context) => ({ outputs: [joinImages(Object.values(images), context)] }),
})

export const repeatImageBatch = defineNode({
  ...facts,
  classType: 'RepeatImageBatch',
  displayName: 'Repeat Image Batch',
  description: 'Repeats a batch of images.',
  required: { image: image({}), amount: int({ default: 1, min: 1, max: 4096 }) },
  cost: ({ image: tensor, amount }) => costOf(tensor.data.length * amount),
  run: ({ image: tensor, amount }, context) => ({ outputs: [repeatBatch(tensor, amount, context)] }),
})

export const imageFromBatch = defineNode({
  ...facts,
  classType: 'ImageFromBatch',
  displayName: 'Get Image from Batch',
  description: 'Takes some images out of a batch; a negative index counts from the end.',
  required: {
    image: image({}),
    batch_index: int({ default: 0, min: -MAX_RESOLUTION, max: MAX_RESOLUTION }),
    length: int({ default: 1, min: 1, max: 4096 }),
  },
  // The result is a view.
  cost: 'inline',
  run({ image: tensor, batch_index: index, length }) {
    const count = tensor.shape[0]
    const start = Math.max(0, index < 0 ? count + index : Math.min(count - 1, index))
    return { outputs: [sliceBatch(tensor, start, Math.min(count - start, length))] }
  },
})

export const rebatchImages = defineListNode({
  ...facts,
  classType: 'RebatchImages',
  displayName: 'Rebatch Images',
  description: 'Groups the images of a list into batches of one size.',
  required: { images: image({}), batch_size: int({ default: 1, min: 1, max: 4096 }) },
  outputs: [{ type: 'IMAGE', isList: true }],
  cost: 'compute',
  run({ images, batch_size: [size] }, context) {
    const singles = splitBatches(images)
    const batches: Tensor[] = []
    for (let at = 0; at < singles.length; at += size) {
      batches.push(concatenate(singles.slice(at, at + size), context))
    }
    return { outputs: [batches] }
  },
})
