/** Images on a larger grey canvas, with a mask of what was added. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { image, int, MAX_RESOLUTION } from '../../node/input-kinds.ts'
import type { Size } from '../../tensor/resize/target-size.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'
import { paste } from '../../tensor/window.ts'

const GREY = 0.5
const padding = () => int({ default: 0, min: 0, max: MAX_RESOLUTION, step: 8 })

interface Padding {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

/** How far each position along one axis is from the padded ends; the whole length when neither is. */
function distances(length: number, before: number, after: number): Int32Array {
  const result = new Int32Array(length)
  for (let i = 0; i < length; i++) {
    result[i] = Math.min(before === 0 ? length : i, after === 0 ? length : length - i)
  }
  return result
}

/** 1 outside the old picture, falling off to 0 inside it within the feathering. */
function outpaintMask(
  { width, height }: Size,
  pad: Padding & { readonly feathering: number },
  { allocate, checkpoint }: PixelWork,
): Tensor {
  const { left, top, right, bottom, feathering } = pad
  const fullWidth = left + width + right
  const mask = allocate([1, top + height + bottom, fullWidth])
  mask.data.fill(1)
  const isFeathered = feathering > 0 && feathering * 2 < height && feathering * 2 < width
  const across = distances(width, left, right)
  const down = distances(height, top, bottom)
  for (let y = 0; y < height; y++) {
    checkpoint()
    const at = (top + y) * fullWidth + left
    for (let x = 0; x < width; x++) {
      const distance = Math.min(down[y], across[x])
      const share = isFeathered && distance < feathering ? (feathering - distance) / feathering : 0
      mask.data[at + x] = share * share
    }
  }
  return mask
}

export const imagePadForOutpaint = defineNode({
  classType: 'ImagePadForOutpaint',
  displayName: 'Pad Image for Outpainting',
  category: 'image/transform',
  description: 'Adds grey around images and a mask of what was added, feathered into the old picture.',
  style: 'classic',
  required: {
    image: image(),
    left: padding(),
    top: padding(),
    right: padding(),
    bottom: padding(),
    feathering: int({ default: 40, min: 0, max: MAX_RESOLUTION, step: 1, advanced: true }),
  },
  outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
  cost: ({ image: tensor, left, right, top, bottom }) => {
    const [batch, height, width, channels] = tensor.shape
    return costOf(batch * (height + top + bottom) * (width + left + right) * channels)
  },
  run({ image: tensor, feathering, ...pad }, context) {
    const [batch, height, width, channels] = tensor.shape
    const { left, top, right, bottom } = pad
    const canvas = context.allocate([batch, top + height + bottom, left + width + right, channels])
    canvas.data.fill(GREY)
    paste(canvas, tensor, { x: left, y: top, frameOf: (index) => index, checkpoint: context.checkpoint })
    return { outputs: [canvas, outpaintMask({ width, height }, { ...pad, feathering }, context)] }
  },
})
