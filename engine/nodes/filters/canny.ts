import { defineNode } from '../../node/define-node.ts'
import { costOf } from '../../node/image-cost.ts'
import { float, image } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { canny as findEdges } from '../../tensor/filters/canny-edges.ts'
import type { Tensor } from '../../tensor/tensor.ts'

const threshold = (value: number) => float({ default: value, min: 0.01, max: 0.99, step: 0.01 })

function requireGreyOrRgb({ shape: [batch, height, width, channels] }: Tensor): void {
  if (channels === 1 || channels === 3) return
  const message =
    'Given groups=1, weight of size [8, 1, 3, 3], expected input' +
    `[${batch}, ${channels}, ${height}, ${width}] to have 1 channels, but got ${channels} channels instead`
  throw new NodeError('RuntimeError', message)
}

export const canny = defineNode({
  classType: 'Canny',
  displayName: 'Detect Edges (Canny)',
  category: 'image/filters',
  description: 'White lines where brightness changes: strong ones, and weaker ones that continue them.',
  style: 'schema',
  required: { image: image({}), low_threshold: threshold(0.4), high_threshold: threshold(0.8) },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length * 8),
  run({ image: tensor, low_threshold: low, high_threshold: high }, context) {
    if (low > high) {
      const message = `Invalid input thresholds. low_threshold should be smaller than the high_threshold. Got: ${low}>${high}`
      throw new NodeError('kornia.core.exceptions.BaseError', message)
    }
    requireGreyOrRgb(tensor)
    return { outputs: [findEdges(tensor, { low, high }, context)] }
  },
})
