/** Resizing by one edge (on 8-bit pixels, sizes truncated) or into a frame that is filled up: relatives of the scale nodes. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { type Chosen, defineDynamicNode, dynamicCombo, MATCHED_OUTPUT, matchType } from '../../node/dynamic-node.ts'
import { combo, float, type InputKind, image, int, MAX_RESOLUTION, ofType } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { cutWindow, paste, type Window } from '../../tensor/channels.ts'
import { UPSCALE_METHODS } from '../../tensor/resize/resize-rows.ts'
import {
  CROP_METHODS,
  type CropMethod,
  longerSideTo,
  type Size,
  scaledBy,
  shorterSideTo,
  upscale,
  withOpenSide,
} from '../../tensor/resize/upscale.ts'
import { type PixelWork, Tensor, viewOf } from '../../tensor/tensor.ts'
import { type Value, valueTypeName } from '../../values/value.ts'

const edge = (length: number) => int({ default: length, min: 1, max: 8192 })

const facts = {
  category: 'image/transform',
  style: 'schema',
  outputs: [{ type: 'IMAGE', name: 'images' }],
  deprecated: true,
  experimental: true,
  cost: 'compute',
} as const

function widthTo({ width, height }: Size, length: number): Size {
  return { width: length, height: Math.trunc(height * (length / width)) }
}

function heightTo({ width, height }: Size, length: number): Size {
  return { width: Math.trunc(width * (length / height)), height: length }
}

function resized(images: Tensor, size: Size, work: PixelWork) {
  return { outputs: [upscale(images, { ...size, method: 'lanczos', crop: 'disabled' }, work)] }
}

export const resizeImagesByShorterEdge = defineNode({
  ...facts,
  classType: 'ResizeImagesByShorterEdge',
  displayName: 'Resize Images by Shorter Edge (DEPRECATED)',
  description: 'Resizes images so that their shorter edge has a given length.',
  required: { images: image({}), shorter_edge: edge(512) },
  run({ images, shorter_edge: length }, context) {
    const [, height, width] = images.shape
    const toLength = width < height ? widthTo : heightTo
    return resized(images, toLength({ width, height }, length), context)
  },
})

export const resizeImagesByLongerEdge = defineNode({
  ...facts,
  classType: 'ResizeImagesByLongerEdge',
  displayName: 'Resize Images by Longer Edge (DEPRECATED)',
  description: 'Resizes images so that their longer edge has a given length.',
  required: { images: image({}), longer_edge: edge(1024) },
  run({ images, longer_edge: length }, context) {
    const [, height, width] = images.shape
    const toLength = width > height ? widthTo : heightTo
    return resized(images, toLength({ width, height }, length), context)
  },
})

const side = () => int({ default: 512, min: 1, max: MAX_RESOLUTION, step: 1 })

export const resizeAndPadImage = defineNode({
  classType: 'ResizeAndPadImage',
  displayName: 'Resize And Pad Image',
  category: 'image/transform',
  description: 'Fits images into a frame without distorting them and fills what stays free with white or black.',
  style: 'schema',
  required: {
    image: image({}),
    target_width: side(),
    target_height: side(),
    padding_color: combo(['white', 'black'], { advanced: true }),
    interpolation: combo(['area', 'bicubic', 'nearest-exact', 'bilinear', 'lanczos'], { advanced: true }),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor, target_width: width, target_height: height }) =>
    costOf(tensor.data.length + width * height * 3),
  run(inputs, context) {
    const { image: tensor, target_width: width, target_height: height, padding_color: color } = inputs
    const [batch, oldHeight, oldWidth, channels] = tensor.shape
    const factor = Math.min(width / oldWidth, height / oldHeight)
    const fitted = { width: Math.trunc(oldWidth * factor), height: Math.trunc(oldHeight * factor) }
    const resized = upscale(tensor, { ...fitted, method: inputs.interpolation, crop: 'disabled' }, context)
    const canvas = context.allocate([batch, height, width, channels])
    canvas.data.fill(color === 'white' ? 1 : 0)
    const x = Math.floor((width - fitted.width) / 2)
    const y = Math.floor((height - fitted.height) / 2)
    paste(canvas, resized, { x, y, frameOf: (index) => index, checkpoint: context.checkpoint })
    return { outputs: [canvas] }
  },
})

// One node for every way of resizing, for images and masks alike.

/** The same declaration, for values that must be an image or a mask. */
function imageOrMask({ spec }: InputKind<Value>): InputKind<Tensor> {
  return {
    spec,
    read(value) {
      if (value instanceof Tensor && (value.shape.length === 3 || value.shape.length === 4)) return value
      throw new NodeError('AttributeError', `'${valueTypeName(value)}' object has no attribute 'shape'`)
    },
  }
}

const sideOrZero = () => int({ default: 512, min: 0, max: MAX_RESOLUTION, step: 1 })
const crop = () => combo(CROP_METHODS, { default: 'center' })

const RESIZE_TYPES = {
  'scale dimensions': { required: { width: sideOrZero(), height: sideOrZero(), crop: crop() } },
  'scale by multiplier': { required: { multiplier: float({ default: 1, min: 0.01, max: 8, step: 0.01 }) } },
  'scale longer dimension': { required: { longer_size: sideOrZero() } },
  'scale shorter dimension': { required: { shorter_size: sideOrZero() } },
  'scale width': { required: { width: sideOrZero() } },
  'scale height': { required: { height: sideOrZero() } },
  'scale total pixels': { required: { megapixels: float({ default: 1, min: 0.01, max: 16, step: 0.01 }) } },
  'match size': { required: { match: imageOrMask(ofType('IMAGE,MASK')), crop: crop() } },
  'scale to multiple': { required: { multiple: int({ default: 8, min: 1, max: MAX_RESOLUTION, step: 1 }) } },
} as const

type ResizeType = Chosen<typeof RESIZE_TYPES>
type Plan = Size & { readonly crop?: CropMethod; readonly window?: Window }

function toTotalPixels(old: Size, megapixels: number): Size {
  const pixels = Math.trunc(megapixels * 1024 * 1024)
  return scaledBy(old, Math.sqrt(pixels / (old.width * old.height)))
}

/** Sides that are multiples, with no distortion: scaled until both are covered, then cut around the centre. */
function toMultiple({ width, height }: Size, multiple: number): Plan | null {
  const wanted = {
    width: Math.floor(width / multiple) * multiple,
    height: Math.floor(height / multiple) * multiple,
  }
  const isSame = wanted.width === width && wanted.height === height
  if (isSame || wanted.width === 0 || wanted.height === 0) return null
  const [across, down] = [wanted.width / width, wanted.height / height]
  const covering =
    across >= down
      ? { width: wanted.width, height: Math.ceil(height * across) }
      : { width: Math.ceil(width * down), height: wanted.height }
  const x = Math.floor((covering.width - wanted.width) / 2)
  const y = Math.floor((covering.height - wanted.height) / 2)
  return { ...covering, window: { x, y, ...wanted } }
}

/** null: nothing to do. */
function planFor(old: Size, { key, inputs }: ResizeType): Plan | null {
  switch (key) {
    case 'scale dimensions': {
      const size = withOpenSide(old, inputs)
      return size && { ...size, crop: inputs.crop }
    }
    case 'scale by multiplier':
      return scaledBy(old, inputs.multiplier)
    case 'scale longer dimension':
      return longerSideTo(old, inputs.longer_size)
    case 'scale shorter dimension':
      return shorterSideTo(old, inputs.shorter_size)
    case 'scale width':
      return withOpenSide(old, { width: inputs.width, height: 0 })
    case 'scale height':
      return withOpenSide(old, { width: 0, height: inputs.height })
    case 'scale total pixels':
      return toTotalPixels(old, inputs.megapixels)
    case 'match size': {
      const { width, height } = viewOf(inputs.match)
      return { width, height, crop: inputs.crop }
    }
    case 'scale to multiple':
      return toMultiple(old, inputs.multiple)
  }
}

export const resizeImageMask = defineDynamicNode({
  classType: 'ResizeImageMaskNode',
  displayName: 'Resize Image/Mask',
  category: 'image/transform',
  description: 'Resizes an image or a mask by one of nine rules.',
  style: 'schema',
  required: {
    input: imageOrMask(matchType({ id: 'input_type', allowedTypes: 'IMAGE,MASK' })),
    resize_type: dynamicCombo(RESIZE_TYPES),
    scale_method: combo(UPSCALE_METHODS, { default: 'area' }),
  },
  outputs: [{ type: MATCHED_OUTPUT, name: 'resized' }],
  outputMatchTypes: ['input_type'],
  cost: 'compute',
  run({ input, resize_type: type, scale_method: method }, context) {
    const plan = planFor(viewOf(input), type)
    if (plan === null) return { outputs: [input] }
    const { width, height, crop: cropMethod = 'disabled', window } = plan
    const resized = upscale(input, { width, height, method, crop: cropMethod }, context)
    return { outputs: [window === undefined ? resized : cutWindow(resized, window, context)] }
  },
})
