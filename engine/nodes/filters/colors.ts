/** Gives images the colours of others: by mean and spread in Lab, or level by level. */
import { defineNode } from '../../node/define-node.ts'
import { type Chosen, defineDynamicNode, dynamicCombo } from '../../node/dynamic-node.ts'
import { combo, float, image, int } from '../../node/input-kinds.ts'
import type { NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { sliceBatch } from '../../tensor/batch-axis.ts'
import { BYTE_TO_FLOAT, byteOf, toBytes } from '../../tensor/bytes.ts'
import { clampToUnit, inBlocks } from '../../tensor/channels.ts'
import {
  type ColorMap,
  covarianceMap,
  cumulativeShares,
  deviationMap,
  labOf,
  matchTable,
  statisticsOf,
  writeRgb,
} from '../../tensor/color/color-statistics.ts'
import {
  bayerMatrix,
  ditherToPalette,
  mapToPalette,
  medianCut,
  type Palette,
  type Picture,
} from '../../tensor/color/palette.ts'
import { type Tensor, viewOf } from '../../tensor/tensor.ts'
import { requireRgb } from './adjustments.ts'

const STATS = {
  per_frame: {},
  uniform: {},
  target_frame: { required: { target_index: int({ default: 0, min: 0, max: 10_000 }) } },
} as const

interface Transfer {
  readonly target: Tensor
  readonly reference: Tensor
  readonly stats: Chosen<typeof STATS>
  readonly strength: number
  readonly context: NodeContext
}

interface FrameRange {
  readonly first: number
  readonly last: number
}

/** Which frames tell what the colours of frame `index` are, and which what they shall be. */
function rangesFor({ target, reference, stats }: Transfer, index: number): { from: FrameRange; to: FrameRange } {
  const [frames, references] = [target.shape[0], reference.shape[0]]
  const all = (count: number) => ({ first: 0, last: count - 1 })
  const only = (frame: number) => ({ first: frame, last: frame })
  if (stats.key === 'per_frame') return { from: only(index), to: only(Math.min(index, references - 1)) }
  if (stats.key === 'uniform') return { from: all(frames), to: all(references) }
  return { from: only(Math.min(stats.inputs.target_index, frames - 1)), to: all(references) }
}

/** Computes once what is the same for every frame; then no frame in particular is given. */
function perFrameOrOnce<T>(
  { stats }: Transfer,
  compute: (index: number, frame: Tensor | null) => T,
): (index: number, frame: Tensor | null) => T {
  if (stats.key === 'per_frame') return compute
  const once = compute(0, null)
  return () => once
}

interface Move extends ColorMap {
  readonly strength: number
  checkpoint(): void
}

/** Moves colours along a map; the tensor is changed, it belongs to this node alone. */
function moveColors({ data }: Tensor, { matrix, offset, strength, checkpoint }: Move): void {
  const [aa, ab, ac, ba, bb, bc, ca, cb, cc] = matrix
  const [a, b, c] = offset
  inBlocks(data.length / 3, checkpoint, (start, end) => {
    for (let at = start * 3; at < end * 3; at += 3) {
      const x = data[at]
      const y = data[at + 1]
      const z = data[at + 2]
      data[at] = x + strength * (aa * x + ab * y + ac * z + a - x)
      data[at + 1] = y + strength * (ba * x + bb * y + bc * z + b - y)
      data[at + 2] = z + strength * (ca * x + cb * y + cc * z + c - z)
    }
  })
}

function transferLab(transfer: Transfer, mapFor: typeof deviationMap): Tensor {
  const { target, reference, strength, context } = transfer
  requireRgb(target)
  requireRgb(reference)
  function* framesOf(images: Tensor, { first, last }: FrameRange) {
    for (let index = first; index <= last; index++) yield labOf(images, index, context)
  }
  const statistics = (frames: Iterable<Tensor>) => statisticsOf(frames, context.checkpoint)
  const mapOf = perFrameOrOnce(transfer, (index, lab: Tensor | null) => {
    const { from, to } = rangesFor(transfer, index)
    // A frame that is judged by itself is already at hand.
    return mapFor(statistics(lab === null ? framesOf(target, from) : [lab]), statistics(framesOf(reference, to)))
  })
  const result = context.allocate(target.shape)
  const frames = target.shape[0]
  for (let index = 0; index < frames; index++) {
    const lab = labOf(target, index, context)
    moveColors(lab, { ...mapOf(index, lab), strength, checkpoint: context.checkpoint })
    writeRgb(lab.data, sliceBatch(result, index, 1).data, context.checkpoint)
    context.progress(index + 1, frames)
  }
  return result
}

function transferLevels(transfer: Transfer): Tensor {
  const { target, reference, strength, context } = transfer
  const { checkpoint } = context
  const tablesOf = perFrameOrOnce(transfer, (index) => {
    const { from, to } = rangesFor(transfer, index)
    const wanted = cumulativeShares(reference, { ...to, checkpoint })
    return cumulativeShares(target, { ...from, checkpoint }).map((shares, c) => matchTable(shares, wanted[c]))
  })
  const result = context.allocate(target.shape)
  const { batch, channels } = viewOf(target)
  for (let index = 0; index < batch; index++) {
    const tables = tablesOf(index, null)
    const source = sliceBatch(target, index, 1).data
    const out = sliceBatch(result, index, 1).data
    tables.forEach((table, c) => {
      inBlocks(source.length / channels, checkpoint, (start, end) => {
        for (let i = start * channels + c; i < end * channels; i += channels) {
          const value = source[i]
          out[i] = clampToUnit(value + strength * (table[byteOf(value)] - value))
        }
      })
    })
    context.progress(index + 1, batch)
  }
  return result
}

const METHODS = ['reinhard_lab', 'mkl_lab', 'histogram'] as const
const TRANSFER: Readonly<Record<(typeof METHODS)[number], (transfer: Transfer) => Tensor>> = {
  reinhard_lab: (transfer) => transferLab(transfer, deviationMap),
  mkl_lab: (transfer) => transferLab(transfer, covarianceMap),
  histogram: transferLevels,
}

export const colorTransfer = defineDynamicNode({
  classType: 'ColorTransfer',
  displayName: 'Transfer Color',
  category: 'image/filters',
  description: 'Gives images the colours of a reference, frame by frame or all frames in the same way.',
  style: 'schema',
  required: {
    image_target: image({}),
    image_ref: image({}),
    method: combo(METHODS),
    source_stats: dynamicCombo(STATS),
    strength: float({ default: 1, min: 0, max: 10, step: 0.01 }),
  },
  outputs: [{ type: 'IMAGE', name: 'image' }],
  cost: 'compute',
  run({ image_target: target, image_ref: reference, method, source_stats: stats, strength }, context) {
    if (strength === 0) return { outputs: [target] }
    return { outputs: [TRANSFER[method]({ target, reference, stats, strength, context })] }
  },
})

// Images reduced to a palette of their own, as Pillow does it, with or without dithering.

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
