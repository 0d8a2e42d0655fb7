/** Images rotated by quarter turns, and mirrored. */
import { costOf, defineNode, values } from '../../node/define-node.ts'
import { combo, image, int, MAX_RESOLUTION } from '../../node/input-kinds.ts'
import { inBlocks, paste } from '../../tensor/channels.ts'
import type { Size } from '../../tensor/resize/upscale.ts'
import { mirrorLeftRight, mirrorUpDown, type QuarterTurns, rotate } from '../../tensor/rotate-and-mirror.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'

// The choices of the nodes that rotate images and latents.

export const ROTATIONS = ['none', '90 degrees', '180 degrees', '270 degrees'] as const
export const QUARTER_TURNS: Readonly<Record<(typeof ROTATIONS)[number], QuarterTurns | 0>> = {
  none: 0,
  '90 degrees': 1,
  '180 degrees': 2,
  '270 degrees': 3,
}

export const imageRotate = defineNode({
  classType: 'ImageRotate',
  displayName: 'Rotate Image',
  category: 'image/transform',
  description: 'Turns images clockwise by quarter turns.',
  style: 'schema',
  required: { image: image({}), rotation: combo(ROTATIONS) },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length),
  run({ image: tensor, rotation }, context) {
    const quarterTurns = QUARTER_TURNS[rotation]
    return { outputs: [quarterTurns === 0 ? tensor : rotate(tensor, quarterTurns, context)] }
  },
})

export const imageFlip = defineNode({
  classType: 'ImageFlip',
  displayName: 'Flip Image',
  category: 'image/transform',
  description: 'Mirrors images: upside down, or left and right exchanged.',
  style: 'schema',
  required: { image: image({}), flip_method: combo(['x-axis: vertically', 'y-axis: horizontally']) },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length),
  run({ image: tensor, flip_method: method }, context) {
    const mirror = method === 'x-axis: vertically' ? mirrorUpDown : mirrorLeftRight
    return { outputs: [mirror(tensor, context)] }
  },
})

// Images on a larger grey canvas, with a mask of what was added.

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

// An image of a given size, and the size of an image.

export const emptyImage = defineNode({
  classType: 'EmptyImage',
  displayName: 'Empty Image',
  category: 'image',
  description: 'A batch of images of one colour.',
  style: 'classic',
  required: {
    width: int({ default: 512, min: 1, max: MAX_RESOLUTION, step: 1 }),
    height: int({ default: 512, min: 1, max: MAX_RESOLUTION, step: 1 }),
    batch_size: int({ default: 1, min: 1, max: 4096 }),
    color: int({ default: 0, min: 0, max: 0xffffff, step: 1, display: 'color' }),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ width, height, batch_size: batch }) => costOf(width * height * batch * 3),
  run({ width, height, batch_size: batch, color }, { allocate, checkpoint }) {
    const result = allocate([batch, height, width, 3])
    const channels = [(color >> 16) & 0xff, (color >> 8) & 0xff, color & 0xff].map((value) => value / 255)
    const [red, green, blue] = channels
    inBlocks(batch * height * width, checkpoint, (start, end) => {
      if (red === green && green === blue) {
        result.data.fill(red, start * 3, end * 3)
        return
      }
      for (let at = start * 3; at < end * 3; at += 3) {
        result.data[at] = red
        result.data[at + 1] = green
        result.data[at + 2] = blue
      }
    })
    return { outputs: [result] }
  },
})

export const getImageSize = defineNode({
  classType: 'GetImageSize',
  displayName: 'Get Image Size',
  category: 'image',
  description: 'Width, height and number of the images.',
  style: 'schema',
  required: { image: image({}) },
  hidden: { unique_id: 'UNIQUE_ID' },
  outputs: [
    { type: 'INT', name: 'width' },
    { type: 'INT', name: 'height' },
    { type: 'INT', name: 'batch_size' },
  ],
  cost: 'inline',
  run({ image: tensor }, context) {
    const [batch, height, width] = tensor.shape
    context.text(`width: ${width}, height: ${height}\n batch size: ${batch}`)
    return values(width, height, batch)
  },
})
