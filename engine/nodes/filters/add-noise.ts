import { defineNode } from '../../node/define-node.ts'
import { costOf } from '../../node/image-cost.ts'
import { float, image, wideInt } from '../../node/input-kinds.ts'
import { fillTorchNormal } from '../../random/torch-normal.ts'
import { inBlocks } from '../../tensor/map-pixels.ts'

const LARGEST_SEED = 2n ** 64n - 1n

export const imageAddNoise = defineNode({
  classType: 'ImageAddNoise',
  displayName: 'Add Noise to Image',
  category: 'image/filters',
  description: 'Adds normal noise that a seed decides.',
  style: 'schema',
  required: {
    image: image({}),
    seed: wideInt({ default: 0, min: 0, max: LARGEST_SEED, control_after_generate: true }),
    strength: float({ default: 0.5, min: 0, max: 1, step: 0.01 }),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length * 4),
  run({ image: tensor, seed, strength }, { allocate, checkpoint }) {
    const result = allocate(tensor.shape)
    const { data } = result
    fillTorchNormal(data, seed, checkpoint)
    inBlocks(data.length, checkpoint, (start, end) => {
      for (let i = start; i < end; i++) {
        const value = tensor.data[i] + Math.fround(strength * data[i])
        data[i] = value < 0 ? 0 : value > 1 ? 1 : value
      }
    })
    return { outputs: [result] }
  },
})
