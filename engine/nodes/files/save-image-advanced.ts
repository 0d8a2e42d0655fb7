/** Images saved with more than 8 bit: PNG of 16, or EXR in linear light. */

import { encodeDeepPng } from '../../images/encode-png.ts'
import { encodeExr, LIGHT_SPACES, type LightSpace, REC_709, REC_2020, toLinearLight } from '../../images/exr.ts'
import { costOf } from '../../node/define-node.ts'
import { dynamicCombo } from '../../node/dynamic-kinds.ts'
import { defineDynamicNode } from '../../node/dynamic-node.ts'
import { combo, image, string } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { type ImageView, viewOf } from '../../tensor/tensor.ts'
import { type EncodeOne, encodeAll, hidden, nameFiles, outputTarget } from './saving.ts'

const advanced = { advanced: true }

const format = dynamicCombo({
  png: {
    required: {
      bit_depth: combo(['8-bit', '16-bit'], { ...advanced, default: '8-bit' }),
      input_color_space: combo(['sRGB'], { ...advanced, default: 'sRGB' }),
    },
  },
  exr: {
    required: {
      bit_depth: combo(['32-bit float'], { ...advanced, default: '32-bit float' }),
      input_color_space: combo(LIGHT_SPACES, { ...advanced, default: 'sRGB' }),
    },
  },
})

function encodeOneExr(view: ImageView, space: LightSpace, { index, texts, checkpoint }: EncodeOne) {
  const { width, height, channels, data } = view
  if (channels !== 1 && channels !== 3 && channels !== 4) {
    throw new NodeError('ValueError', `an EXR holds 1, 3 or 4 channels, not ${channels}`)
  }
  if (width === 0 || height === 0) throw new NodeError('ValueError', 'an image without pixels cannot be saved')
  const size = width * height * channels
  const part = data.subarray(index * size, (index + 1) * size)
  const pixels = toLinearLight(part, { channels, space, checkpoint })
  const chromaticities = space === 'HDR' ? REC_2020 : REC_709
  return encodeExr({ width, height, channels, pixels }, { chromaticities, texts, checkpoint })
}

export const saveImageAdvanced = defineDynamicNode({
  classType: 'SaveImageAdvanced',
  displayName: 'Save Image (Advanced)',
  category: 'image',
  description: 'Writes every image of the batch as a PNG of 8 or 16 bit, or as an EXR of floats in linear light.',
  style: 'schema',
  required: {
    images: image({}),
    filename_prefix: string({ default: 'ComfyUI', multiline: false }),
    format,
  },
  hidden,
  outputs: [{ type: 'IMAGE', name: 'images' }],
  isOutputNode: true,
  cost: ({ images }) => costOf(images.data.length),
  async run({ images, filename_prefix: prefix, format: chosen }, context) {
    const view = viewOf(images)
    const contentType = chosen.key === 'png' ? 'image/png' : 'image/x-exr'
    const target = outputTarget(context, { prefix, size: view, ending: '', extension: chosen.key, contentType })
    const encoded = await encodeAll(
      view,
      (one) =>
        chosen.key === 'png'
          ? encodeDeepPng(view, { ...one, bits: chosen.inputs.bit_depth === '16-bit' ? 16 : 8 })
          : encodeOneExr(view, chosen.inputs.input_color_space, one),
      context,
    )
    return { outputs: [images], report: { images: await nameFiles(encoded, target, context) } }
  },
})
