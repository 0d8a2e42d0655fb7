/** One picture, or one latent, laid over another where a mask allows it. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { boolean, combo, type InputKind, image, int, MAX_RESOLUTION, mask } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { broadcastShape, copyInto, sizeMismatch, sliceBatch } from '../../tensor/batch-axis.ts'
import { alignChannels, clampToUnit, inBlocks, mapBlocks, setChannelCount, takeChannel } from '../../tensor/channels.ts'
import { toCompositeJob } from '../../tensor/compose/blend.ts'
import { type Picture, pastePicture } from '../../tensor/compose/paste.ts'
import { composePorterDuff, PORTER_DUFF_MODES } from '../../tensor/compose/porter-duff.ts'
import { planeSize, resizePlanes, upscale } from '../../tensor/resize/upscale.ts'
import { runRows } from '../../tensor/rows/run-rows.ts'
import { elementCount, type PixelWork, type Tensor, viewOf } from '../../tensor/tensor.ts'
import { LATENT_SCALE, latent } from '../latents/latents.ts'
import { asMaskBatch, offset, position } from './masks.ts'

const placement = (offsetOf: () => InputKind<number>) => ({
  x: offsetOf(),
  y: offsetOf(),
  resize_source: boolean({ default: false }),
})
const optional = { mask: mask({}) }

/** In the width and height of `to`. */
function stretch(tensor: Tensor, to: Tensor, work: PixelWork): Tensor {
  const { width, height } = viewOf(to)
  return upscale(tensor, { width, height, method: 'bilinear', crop: 'disabled' }, work)
}

export const imageCompositeMasked = defineNode({
  classType: 'ImageCompositeMasked',
  displayName: 'Image Composite Masked',
  category: 'image/compositing',
  description: 'Lays one image over another at a place, where a mask allows it.',
  style: 'schema',
  required: { destination: image({}), source: image({}), ...placement(offset) },
  optional,
  outputs: [{ type: 'IMAGE' }],
  cost: ({ destination, source }) => costOf(destination.data.length + source.data.length),
  run({ destination, source, x, y, resize_source: isResized, mask: given }, context) {
    const aligned = alignChannels(destination, source, context)
    const { channels } = viewOf(destination)
    // Upstream has the channels in front of height and width here.
    if (aligned.shape[3] !== channels) throw sizeMismatch(channels, aligned.shape[3], 1)
    const above = isResized ? stretch(aligned, destination, context) : aligned
    const weights = given === undefined ? null : viewOf(stretch(asMaskBatch(given), above, context))
    const result = context.allocate(destination.shape)
    const composite = { destination: viewOf(destination), source: viewOf(above), mask: weights, out: result.data, x, y }
    runRows(toCompositeJob(composite), context)
    return { outputs: [result] }
  },
})

const cellOffset = () => int({ default: 0, min: 0, max: MAX_RESOLUTION, step: 8 })

/** Plane `plane` of member `member`; both repeat from their start where there are fewer. */
function planeOf(tensor: Tensor, member: number, plane: number): Picture {
  const { width, height } = planeSize(tensor)
  const planes = elementCount(tensor.shape.slice(1, -2))
  const index = (member % tensor.shape[0]) * planes + (plane % planes)
  return { data: tensor.data, start: index * width * height, width, height }
}

export const latentCompositeMasked = defineNode({
  classType: 'LatentCompositeMasked',
  displayName: 'Latent Composite Masked',
  category: 'model/latent',
  description: 'Lays one latent over another at a place, where a mask allows it.',
  style: 'schema',
  required: { destination: latent({}), source: latent({}), ...placement(cellOffset) },
  optional,
  outputs: [{ type: 'LATENT' }],
  cost: ({ destination, source }) => costOf(destination.samples.data.length + source.samples.data.length),
  run({ destination, source, x, y, resize_source: isResized, mask: given }, context) {
    const { samples } = destination
    broadcastShape(samples.shape.slice(1, -2), source.samples.shape.slice(1, -2))
    const bilinear = { method: 'bilinear', crop: 'disabled' } as const
    const above = isResized
      ? resizePlanes(source.samples, { ...planeSize(samples), ...bilinear }, context)
      : source.samples
    const weights =
      given === undefined ? null : resizePlanes(asMaskBatch(given), { ...planeSize(above), ...bilinear }, context)
    const result = context.allocate(samples.shape)
    copyInto(result.data, 0, samples.data, context.checkpoint)
    const [left, top] = [Math.floor(x / LATENT_SCALE), Math.floor(y / LATENT_SCALE)]
    const planes = elementCount(samples.shape.slice(1, -2))
    for (let index = 0; index < samples.shape[0] * planes; index++) {
      const [member, plane] = [Math.floor(index / planes), index % planes]
      const target = planeOf(result, member, plane)
      const maskPart = weights === null ? null : planeOf(weights, member, 0)
      const paste = { target, source: planeOf(above, member, plane), mask: maskPart, channels: 1, x: left, y: top }
      pastePicture(paste, context)
    }
    return { outputs: [{ ...destination, samples: result }] }
  },
})

// Two masks combined, by arithmetic or by logic.

const OPERATIONS = ['multiply', 'add', 'subtract', 'and', 'or', 'xor'] as const
type Operation = (typeof OPERATIONS)[number]

// A mask value counts as set from where it rounds to something else than 0; halves round to even.
const isSet = (value: number) => value > 0.5 || value < -0.5

type Row = Float32Array
type CombineRow = (out: Row, destination: Row, source: Row) => void

/** Whole rows at a time: a call per value would cost more than the arithmetic. */
const COMBINE: Readonly<Record<Operation, CombineRow>> = {
  multiply(out, a, b) {
    for (let i = 0; i < out.length; i++) out[i] = clampToUnit(a[i] * b[i])
  },
  add(out, a, b) {
    for (let i = 0; i < out.length; i++) out[i] = clampToUnit(a[i] + b[i])
  },
  subtract(out, a, b) {
    for (let i = 0; i < out.length; i++) out[i] = clampToUnit(a[i] - b[i])
  },
  and(out, a, b) {
    for (let i = 0; i < out.length; i++) out[i] = isSet(a[i]) && isSet(b[i]) ? 1 : 0
  },
  or(out, a, b) {
    for (let i = 0; i < out.length; i++) out[i] = isSet(a[i]) || isSet(b[i]) ? 1 : 0
  },
  xor(out, a, b) {
    for (let i = 0; i < out.length; i++) out[i] = isSet(a[i]) !== isSet(b[i]) ? 1 : 0
  },
}

export const maskComposite = defineNode({
  classType: 'MaskComposite',
  displayName: 'Combine Masks',
  category: 'image/mask',
  description: 'Lays one mask over another at a place, by arithmetic or by logic.',
  style: 'schema',
  required: {
    destination: mask({}),
    source: mask({}),
    ...position(),
    operation: combo(OPERATIONS),
  },
  outputs: [{ type: 'MASK' }],
  cost: ({ destination }) => costOf(destination.data.length * 2),
  run({ destination, source, x, y, operation }, context) {
    const below = asMaskBatch(destination)
    const above = asMaskBatch(source)
    const [batch, height, width] = below.shape
    const [sources, sourceHeight, sourceWidth] = above.shape
    broadcastShape([batch, 1, 1], [sources, 1, 1])
    const result = mapBlocks(below, context, (from, to, { start, end }) => {
      for (let i = start; i < end; i++) to[i] = clampToUnit(from[i])
    })
    const combine = COMBINE[operation]
    const columns = Math.max(0, Math.min(sourceWidth, width - x))
    const rows = columns === 0 ? 0 : Math.max(0, Math.min(sourceHeight, height - y))
    for (let row = 0; row < batch * rows; row++) {
      context.checkpoint()
      const index = Math.floor(row / rows)
      const line = row % rows
      const at = (index * height + y + line) * width + x
      const from = ((sources === 1 ? 0 : index) * sourceHeight + line) * sourceWidth
      const end = at + columns
      combine(result.data.subarray(at, end), below.data.subarray(at, end), above.data.subarray(from, from + columns))
    }
    return { outputs: [result] }
  },
})

// Two images with transparency laid over each other in the modes of Porter and Duff.

interface Fit {
  readonly batch: number
  readonly width: number
  readonly height: number
}

/** The first `batch` pictures in another size. Nothing is clamped: a bicubic curve may leave 0..1. */
function fit(tensor: Tensor, { batch, width, height }: Fit, work: PixelWork): Tensor {
  return upscale(sliceBatch(tensor, 0, batch), { width, height, method: 'bicubic', crop: 'center' }, work)
}

export const porterDuffImageComposite = defineNode({
  classType: 'PorterDuffImageComposite',
  displayName: 'Porter-Duff Image Composite',
  category: 'image/compositing',
  description: 'Lays a source over a destination, both with transparency, in one of eighteen modes.',
  style: 'schema',
  required: {
    source: image({}),
    source_alpha: mask({}),
    destination: image({}),
    destination_alpha: mask({}),
    mode: combo(PORTER_DUFF_MODES, { default: 'DST' }),
  },
  outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
  cost: ({ destination }) => costOf(destination.data.length),
  run({ source, source_alpha, destination, destination_alpha, mode }, context) {
    const masks = [asMaskBatch(source_alpha), asMaskBatch(destination_alpha)]
    const batch = Math.min(...[source, destination, ...masks].map((tensor) => tensor.shape[0]))
    const [, height, width, channels] = destination.shape
    // Upstream asserts this without a text.
    if (source.shape[3] !== channels) throw new NodeError('AssertionError', '')
    const wanted = { batch, width, height }
    const picture = {
      source: fit(source, wanted, context).data,
      sourceMask: fit(masks[0], wanted, context).data,
      destination: destination.data,
      destinationMask: fit(masks[1], wanted, context).data,
      channels,
    }
    const composed = context.allocate([batch, height, width, channels])
    const composedMask = context.allocate([batch, height, width])
    inBlocks(composedMask.data.length, context.checkpoint, (start, end) =>
      composePorterDuff({ ...picture, image: composed.data, mask: composedMask.data }, mode, { start, end }),
    )
    return { outputs: [composed, composedMask] }
  },
})

// An image's alpha channel and a mask are each other's negative: alpha says what is there, a mask what is not.

const COLORS = 3
const ALPHA = 3

export const splitImageWithAlpha = defineNode({
  classType: 'SplitImageWithAlpha',
  displayName: 'Split Image with Alpha',
  category: 'image/compositing',
  description: 'Separates the colours of an image from its transparency.',
  style: 'schema',
  required: { image: image({}) },
  outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length),
  run({ image: tensor }, context) {
    const [batch, height, width, channels] = tensor.shape
    if (channels > ALPHA) {
      const colors = setChannelCount(tensor, COLORS, context)
      return { outputs: [colors, takeChannel(tensor, { channel: ALPHA, isInverted: true }, context)] }
    }
    const opaque = context.allocate([batch, height, width])
    opaque.data.fill(0)
    return { outputs: [tensor, opaque] }
  },
})

export const joinImageWithAlpha = defineNode({
  classType: 'JoinImageWithAlpha',
  displayName: 'Join Image with Alpha',
  category: 'image/compositing',
  description: 'Gives an image a transparency: what the mask marks becomes transparent.',
  style: 'schema',
  required: { image: image({}), alpha: mask({}) },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length),
  run({ image: tensor, alpha }, context) {
    const [images, height, width, channels] = tensor.shape
    const masks = upscale(asMaskBatch(alpha), { width, height, method: 'bilinear', crop: 'disabled' }, context)
    const batch = Math.max(images, masks.shape[0])
    const colors = Math.min(channels, COLORS)
    const result = context.allocate([batch, height, width, colors + 1])
    const [from, weights, to] = [tensor.data, masks.data, result.data]
    const pixels = height * width
    for (let index = 0; index < batch; index++) {
      const [source, weight, target] = [(index % images) * pixels, (index % masks.shape[0]) * pixels, index * pixels]
      inBlocks(pixels, context.checkpoint, (start, end) => {
        for (let i = start; i < end; i++) {
          const at = (target + i) * (colors + 1)
          const color = (source + i) * channels
          to[at] = from[color]
          if (colors > 1) to[at + 1] = from[color + 1]
          if (colors > 2) to[at + 2] = from[color + 2]
          to[at + colors] = 1 - weights[weight + i]
        }
      })
    }
    return { outputs: [result] }
  },
})
