/** How often each level occurs in an image. */
import { costOf, defineNode, values } from '../../node/define-node.ts'
import { image } from '../../node/input-kinds.ts'
import { byteOf } from '../../tensor/bytes.ts'
import { inBlocks } from '../../tensor/map-pixels.ts'
import { viewOf } from '../../tensor/tensor.ts'

const LEVELS = 256

const histogram = (name: string) => ({ type: 'HISTOGRAM', name })

export const imageHistogram = defineNode({
  classType: 'ImageHistogram',
  displayName: 'Image Histogram',
  category: 'utilities',
  description: 'How often each of 256 levels occurs in the first image: colours together, brightness, and each colour.',
  style: 'schema',
  required: { image: image({}) },
  outputs: [histogram('rgb'), histogram('luminance'), histogram('red'), histogram('green'), histogram('blue')],
  cost: ({ image: tensor }) => costOf(tensor.data.length),
  run({ image: tensor }, { checkpoint }) {
    const { width, height, channels, data } = viewOf(tensor)
    const counts = [0, 1, 2, 3].map(() => new Int32Array(LEVELS))
    const [red, green, blue, luminance] = counts
    // Grey images count as three equal colours.
    const [second, third] = channels >= 3 ? [1, 2] : [0, 0]
    inBlocks(width * height, checkpoint, (start, end) => {
      for (let at = start * channels; at < end * channels; at += channels) {
        const [r, g, b] = [data[at], data[at + second], data[at + third]]
        red[byteOf(r)]++
        green[byteOf(g)]++
        blue[byteOf(b)]++
        luminance[byteOf(0.2126 * r + 0.7152 * g + 0.0722 * b)]++
      }
    })
    const rgb = red.map((count, level) => Math.floor((count + green[level] + blue[level]) / 3))
    return values([...rgb], [...luminance], [...red], [...green], [...blue])
  },
})
