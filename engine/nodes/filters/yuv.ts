/** Between red, green, blue and brightness with two colour differences, as JPEG has them; all within 0..1. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { image } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { clampToUnit, inBlocks } from '../../tensor/map-pixels.ts'
import type { Tensor } from '../../tensor/tensor.ts'

export const imageRgbToYuv = defineNode({
  classType: 'ImageRGBToYUV',
  displayName: 'Image RGB to YUV',
  category: 'image/color',
  description: 'Brightness and the two colour differences of images, each as a grey image.',
  style: 'schema',
  required: { image: image({}) },
  outputs: [
    { type: 'IMAGE', name: 'Y' },
    { type: 'IMAGE', name: 'U' },
    { type: 'IMAGE', name: 'V' },
  ],
  cost: ({ image: tensor }) => costOf(tensor.data.length * 3),
  run({ image: tensor }, { allocate, checkpoint }) {
    requireRgb(tensor)
    const planes = [allocate(tensor.shape), allocate(tensor.shape), allocate(tensor.shape)]
    const [luma, blueness, redness] = planes.map((plane) => plane.data)
    const { data } = tensor
    inBlocks(data.length / 3, checkpoint, (start, end) => {
      for (let at = start * 3; at < end * 3; at += 3) {
        const y = 0.299 * data[at] + 0.587 * data[at + 1] + 0.114 * data[at + 2]
        const u = (data[at + 2] - y) * 0.564 + 0.5
        const v = (data[at] - y) * 0.713 + 0.5
        for (let c = at; c < at + 3; c++) {
          luma[c] = y
          blueness[c] = u
          redness[c] = v
        }
      }
    })
    return { outputs: planes }
  },
})

/** The mean over the channels of one pixel. */
function meanAt(data: Float32Array, pixel: number, channels: number): number {
  const at = pixel * channels
  if (channels === 3) return (data[at] + data[at + 1] + data[at + 2]) / 3
  let sum = 0
  for (let c = at; c < at + channels; c++) sum += data[c]
  return sum / channels
}

function requireSameSize(first: Tensor, others: readonly Tensor[]): void {
  for (const { shape } of others) {
    const axis = [0, 1, 2].find((index) => shape[index] !== first.shape[index])
    if (axis === undefined) continue
    const message =
      `Sizes of tensors must match except in dimension 3. Expected size ${first.shape[axis]} ` +
      `but got size ${shape[axis]} in the list`
    throw new NodeError('RuntimeError', message)
  }
}

export const imageYuvToRgb = defineNode({
  classType: 'ImageYUVToRGB',
  displayName: 'Image YUV to RGB',
  category: 'image/color',
  description: 'Puts brightness and two colour differences together to a colour image.',
  style: 'schema',
  required: { Y: image({}), U: image({}), V: image({}) },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ Y }) => costOf(Y.data.length * 3),
  run({ Y, U, V }, context) {
    requireSameSize(Y, [U, V])
    const [batch, height, width, ofLuma] = Y.shape
    const [ofBlueness, ofRedness] = [U.shape[3], V.shape[3]]
    const result = context.allocate([batch, height, width, 3])
    const { data } = result
    inBlocks(batch * height * width, context.checkpoint, (start, end) => {
      for (let pixel = start, at = start * 3; pixel < end; pixel++, at += 3) {
        const y = meanAt(Y.data, pixel, ofLuma)
        const u = meanAt(U.data, pixel, ofBlueness) - 0.5
        const v = meanAt(V.data, pixel, ofRedness) - 0.5
        data[at] = clampToUnit(y + 1.403 * v)
        data[at + 1] = clampToUnit(y - 0.714 * v - 0.344 * u)
        data[at + 2] = clampToUnit(y + 1.773 * u)
      }
    })
    return { outputs: [result] }
  },
})

/** Refuses images without exactly three channels, in the words of the library that upstream asks. */
export function requireRgb({ shape }: Tensor): void {
  const [batch, height, width, channels] = shape
  if (channels === 3) return
  const seen = `torch.Size([${batch}, ${channels}, ${height}, ${width}])`
  throw new NodeError('ValueError', `Input size must have a shape of (*, 3, H, W). Got ${seen}`)
}
