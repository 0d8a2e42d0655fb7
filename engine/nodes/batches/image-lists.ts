/** Lists of images as training data: thinned out, shuffled, flattened, laid out as a grid. */

import { defineListNode } from '../../node/define-node.ts'
import { float, image, int, MAX_SEED, wideInt } from '../../node/input-kinds.ts'
import type { NodeContext } from '../../node/node-context.ts'
import { unknownPixels } from '../../node/node-error.ts'
import { seedNumpy } from '../../random/numpy-legacy.ts'
import { splitBatches } from '../../tensor/batch-axis.ts'
import { setChannelCount } from '../../tensor/channels.ts'
import { inBlocks } from '../../tensor/map-pixels.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'
import { paste } from '../../tensor/window.ts'

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

const facts = { category: 'image/batch', style: 'schema', experimental: true } as const
const listed = [{ type: 'IMAGE', name: 'images', isList: true }] as const

export const imageDeduplication = defineListNode({
  ...facts,
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
  ...facts,
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
  ...facts,
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
  ...facts,
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
