/** Images reduced to a palette of their own, as Pillow does it, with or without dithering. */
import { defineNode } from '../../node/define-node.ts'
import { combo, image, int } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { BYTE_TO_FLOAT, toBytes } from '../../tensor/bytes.ts'
import { medianCut, type Palette } from '../../tensor/color/median-cut.ts'
import { bayerMatrix, ditherToPalette, mapToPalette, type Picture } from '../../tensor/color/palette-map.ts'
import { inBlocks } from '../../tensor/map-pixels.ts'
import { viewOf } from '../../tensor/tensor.ts'

const DITHERS = ['none', 'floyd-steinberg', 'bayer-2', 'bayer-4', 'bayer-8', 'bayer-16'] as const
type Dither = (typeof DITHERS)[number]

type Reduce = (picture: Picture, palette: Palette, checkpoint: () => void) => void

/** A pattern is added before the nearest entries are looked up, the wider the fewer they are. */
function orderedBy(order: 2 | 4 | 8 | 16): Reduce {
  return (picture, palette, checkpoint) => {
    const { pixels, width, height } = picture
    const spread = 512 / (palette.length / 3)
    const pattern = bayerMatrix(order).map((value) => Math.fround(spread * value) + 0.5)
    for (let y = 0, at = 0; y < height; y++) {
      checkpoint()
      for (let x = 0; x < width; x++) {
        const added = pattern[(y % order) * order + (x % order)]
        for (let c = 0; c < 3; c++, at++) {
          const level = Math.fround(pixels[at] + added)
          pixels[at] = level > 255 ? 255 : level > 0 ? level | 0 : 0
        }
      }
    }
    mapToPalette(picture, palette, checkpoint)
  }
}

const REDUCE: Readonly<Record<Dither, Reduce>> = {
  none: mapToPalette,
  'floyd-steinberg': ditherToPalette,
  'bayer-2': orderedBy(2),
  'bayer-4': orderedBy(4),
  'bayer-8': orderedBy(8),
  'bayer-16': orderedBy(16),
}

export const imageQuantize = defineNode({
  classType: 'ImageQuantize',
  displayName: 'Quantize Image',
  category: 'image/filters',
  description: 'Reduces every image to a palette of its own, with or without dithering.',
  style: 'schema',
  required: {
    image: image({}),
    colors: int({ default: 256, min: 1, max: 256, step: 1 }),
    dither: combo(DITHERS),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: 'compute',
  run({ image: tensor, colors, dither }, { allocate, checkpoint }) {
    const { batch, height, width, channels, data } = viewOf(tensor)
    if (channels !== 3) {
      const message = `The expanded size of the tensor (${channels}) must match the existing size (3) at non-singleton dimension 2`
      throw new NodeError('RuntimeError', message)
    }
    const result = allocate(tensor.shape)
    const count = height * width * 3
    const pixels = new Uint8Array(count)
    for (let index = 0; index < batch; index++) {
      const first = index * count
      inBlocks(count, checkpoint, (from, to) =>
        toBytes(data, pixels, { from: first + from, to: from, count: to - from }),
      )
      REDUCE[dither]({ pixels, width, height }, medianCut(pixels, colors, checkpoint), checkpoint)
      inBlocks(count, checkpoint, (from, to) => {
        for (let i = from; i < to; i++) result.data[first + i] = BYTE_TO_FLOAT[pixels[i]]
      })
    }
    return { outputs: [result] }
  },
})
