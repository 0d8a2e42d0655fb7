/** One node for every way of resizing, for images and masks alike. */

import { type Chosen, dynamicCombo, MATCHED_OUTPUT, matchType } from '../../node/dynamic-kinds.ts'
import { defineDynamicNode } from '../../node/dynamic-node.ts'
import { combo, float, type InputKind, int, MAX_RESOLUTION, ofType } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { UPSCALE_METHODS } from '../../tensor/resize/resize-rows.ts'
import { longerSideTo, type Size, scaledBy, shorterSideTo, withOpenSide } from '../../tensor/resize/target-size.ts'
import { CROP_METHODS, type CropMethod, upscale } from '../../tensor/resize/upscale.ts'
import { Tensor, viewOf } from '../../tensor/tensor.ts'
import { cutWindow, type Window } from '../../tensor/window.ts'
import { type Value, valueTypeName } from '../../values/value.ts'

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

const side = () => int({ default: 512, min: 0, max: MAX_RESOLUTION, step: 1 })
const crop = () => combo(CROP_METHODS, { default: 'center' })

const RESIZE_TYPES = {
  'scale dimensions': { required: { width: side(), height: side(), crop: crop() } },
  'scale by multiplier': { required: { multiplier: float({ default: 1, min: 0.01, max: 8, step: 0.01 }) } },
  'scale longer dimension': { required: { longer_size: side() } },
  'scale shorter dimension': { required: { shorter_size: side() } },
  'scale width': { required: { width: side() } },
  'scale height': { required: { height: side() } },
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
