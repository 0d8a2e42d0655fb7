/** The batch axis of images. */
import { costOf, defineListNode, defineNode } from '../../node/define-node.ts'
import { autogrow, defineDynamicNode } from '../../node/dynamic-node.ts'
import { float, image, int, MAX_RESOLUTION, MAX_SEED, wideInt } from '../../node/input-kinds.ts'
import type { NodeContext } from '../../node/node-context.ts'
import { unknownPixels } from '../../node/node-error.ts'
import { seedNumpy } from '../../random/random.ts'
import { concatenate, repeatBatch, sliceBatch, splitBatches } from '../../tensor/batch-axis.ts'
import { inBlocks, paste, setChannelCount } from '../../tensor/channels.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'

// Lists of images as training data: thinned out, shuffled, flattened, laid out as a grid.

const SIDE = 8
const PARTS = SIDE * SIDE

/** Grey as Pillow makes it of 8-bit colours. */
function greyOf(red: number, green: number, blue: number): number {
  return (19_595 * red + 38_470 * green + 7_471 * blue + 32_768) >> 16
}

/** What a picture shows: which of its 64 parts are brighter than the mean. Alike pictures differ in few. */
type Fingerprint = readonly boolean[]

/** Of a batch of one. */
function fingerprintOf(image: Tensor, work: PixelWork): Fingerprint {
  const small = upscale(image, { width: SIDE, height: SIDE, method: 'lanczos', crop: 'disabled' }, work)
  const channels = small.shape[3]
  const byte = (index: number) => Math.round(small.data[index] * 255)
  const greys = Array.from({ length: PARTS }, (_, part) => {
    const at = part * channels
    return channels < 3 ? byte(at) : greyOf(byte(at), byte(at + 1), byte(at + 2))
  })
  const mean = greys.reduce((sum, grey) => sum + grey, 0) / PARTS
  return greys.map((grey) => grey > mean)
}

/** 1 for the same fingerprint, 0 for opposites. */
function likeness(a: Fingerprint, b: Fingerprint): number {
  return 1 - a.filter((bit, part) => bit !== b[part]).length / PARTS
}

const listFacts = { category: 'image/batch', style: 'schema', experimental: true } as const
const listed = [{ type: 'IMAGE', name: 'images', isList: true }] as const

export const imageDeduplication = defineListNode({
  ...listFacts,
  classType: 'ImageDeduplication',
  displayName: 'Deduplicate Images',
  description: 'Drops images that show nearly the same as an earlier one.',
  required: {
    images: image({}),
    similarity_threshold: float({ advanced: true, default: 0.95, min: 0, max: 1 }),
  },
  outputs: listed,
  cost: 'compute',
  run({ images, similarity_threshold: [threshold] }, context) {
    const kept: Tensor[] = []
    const known: Fingerprint[] = []
    for (const single of splitBatches(images)) {
      context.checkpoint()
      const fingerprint = fingerprintOf(single, context)
      if (known.some((earlier) => likeness(earlier, fingerprint) >= threshold)) continue
      kept.push(single)
      known.push(fingerprint)
    }
    return { outputs: [kept] }
  },
})

export const shuffleDataset = defineListNode({
  ...listFacts,
  classType: 'ShuffleDataset',
  displayName: 'Shuffle Images List',
  description: 'Puts images into an order that a seed decides.',
  required: { images: image({}), seed: wideInt({ default: 0, min: 0, max: MAX_SEED }) },
  outputs: listed,
  cost: 'inline',
  run({ images, seed: [seed] }) {
    const singles = splitBatches(images)
    const order = seedNumpy(seed).permutation(singles.length)
    return { outputs: [order.map((index) => singles[index])] }
  },
})

export const mergeImageLists = defineListNode({
  ...listFacts,
  classType: 'MergeImageLists',
  displayName: 'Merge Image Lists (DEPRECATED)',
  description: 'Makes one list of single images.',
  deprecated: true,
  required: { images: image({}) },
  outputs: listed,
  cost: 'inline',
  run: ({ images }) => ({ outputs: [splitBatches(images)] }),
})

const COLORS = 3

/** The image in the size of a cell, through 8 bit, without its alpha. */
function toCell(single: Tensor, size: { width: number; height: number }, context: NodeContext): Tensor {
  const channels = single.shape[3]
  if (channels < COLORS) throw unknownPixels(channels)
  return setChannelCount(upscale(single, { ...size, method: 'lanczos', crop: 'disabled' }, context), COLORS, context)
}

export const imageGrid = defineListNode({
  ...listFacts,
  classType: 'ImageGrid',
  displayName: 'Make Image Grid',
  description: 'Lays images out in rows on a black canvas.',
  required: {
    images: image({}),
    columns: int({ default: 4, min: 1, max: 20 }),
    cell_width: int({ advanced: true, default: 256, min: 32, max: 2048 }),
    cell_height: int({ advanced: true, default: 256, min: 32, max: 2048 }),
    padding: int({ advanced: true, default: 4, min: 0, max: 50 }),
  },
  outputs: [{ type: 'IMAGE', name: 'images' }],
  cost: 'compute',
  run({ images, columns: [columns], cell_width: [width], cell_height: [height], padding: [padding] }, context) {
    const singles = splitBatches(images)
    const rows = Math.ceil(singles.length / columns)
    const side = (count: number, cell: number) => count * cell + Math.max(0, count - 1) * padding
    const canvas = context.allocate([1, side(rows, height), side(columns, width), COLORS])
    inBlocks(canvas.data.length, context.checkpoint, (start, end) => canvas.data.fill(0, start, end))
    singles.forEach((single, index) => {
      const x = (index % columns) * (width + padding)
      const y = Math.floor(index / columns) * (height + padding)
      const cell = toCell(single, { width, height }, context)
      paste(canvas, cell, { x, y, frameOf: () => 0, checkpoint: context.checkpoint })
    })
    return { outputs: [canvas] }
  },
})

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
