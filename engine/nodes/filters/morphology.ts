import { defineNode } from '../../node/define-node.ts'
import { costOf } from '../../node/image-cost.ts'
import { combo, image, int } from '../../node/input-kinds.ts'
import { slidingExtreme } from '../../tensor/filters/sliding-extreme.ts'
import { inBlocks } from '../../tensor/map-pixels.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'

const OPERATIONS = ['erode', 'dilate', 'open', 'close', 'gradient', 'bottom_hat', 'top_hat'] as const
type Operation = (typeof OPERATIONS)[number]

type Step = (source: Tensor, size: number, work: PixelWork) => Tensor

const squareOf = (size: number) => ({ size, origin: Math.floor(size / 2) })
const erode: Step = (source, size, work) => slidingExtreme(source, { kind: 'min', ...squareOf(size) }, work)
const dilate: Step = (source, size, work) => slidingExtreme(source, { kind: 'max', ...squareOf(size) }, work)
const open: Step = (source, size, work) => dilate(erode(source, size, work), size, work)
const close: Step = (source, size, work) => erode(dilate(source, size, work), size, work)

function difference(a: Tensor, b: Tensor, { allocate, checkpoint }: PixelWork): Tensor {
  const result = allocate(a.shape)
  inBlocks(result.data.length, checkpoint, (start, end) => {
    for (let i = start; i < end; i++) result.data[i] = a.data[i] - b.data[i]
  })
  return result
}

const STEPS: Readonly<Record<Operation, Step>> = {
  erode,
  dilate,
  open,
  close,
  gradient: (source, size, work) => difference(dilate(source, size, work), erode(source, size, work), work),
  bottom_hat: (source, size, work) => difference(close(source, size, work), source, work),
  top_hat: (source, size, work) => difference(source, open(source, size, work), work),
}

export const morphology = defineNode({
  classType: 'Morphology',
  displayName: 'Apply Morphology',
  category: 'image/filters',
  description: 'Grows or shrinks bright parts by a square, and what can be made of the two.',
  style: 'schema',
  required: {
    image: image({}),
    operation: combo(OPERATIONS),
    kernel_size: int({ default: 3, min: 3, max: 999, step: 1 }),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length * 8),
  run: ({ image: tensor, operation, kernel_size: size }, context) => ({
    outputs: [STEPS[operation](tensor, size, context)],
  }),
})
