/** A batch of images as one moving picture. */
import { pythonJsonDumps } from '../../../lib/python/values.ts'
import { assembleApng, encodeDeepPng, encodePng } from '../../images/encode-png.ts'
import { encodeWebp, insertWebpExif } from '../../images/encode-webp.ts'
import { encodeExr, LIGHT_SPACES, type LightSpace, REC_709, REC_2020, toLinearLight } from '../../images/exr.ts'
import { costOf, defineNode } from '../../node/define-node.ts'
import { defineDynamicNode, dynamicCombo } from '../../node/dynamic-node.ts'
import { boolean, combo, float, type InputKind, image, int, string } from '../../node/input-kinds.ts'
import type { CallResult, MadeFile } from '../../node/node-context.ts'
import { NodeError, unknownPixels } from '../../node/node-error.ts'
import { type ImageView, type Tensor, viewOf } from '../../tensor/tensor.ts'
import { type Value, type ValueObject, valueTypeName } from '../../values/value.ts'
import {
  type EncodeOne,
  encodeAll,
  hidden,
  madeFrom,
  madeFromTexts,
  nameFile,
  nameFiles,
  outputTarget,
} from './save-image.ts'

const common = {
  category: 'image',
  style: 'schema',
  hidden,
  outputs: [{ type: 'IMAGE', name: 'images' }],
  isOutputNode: true,
  cost: 'compute',
} as const

const filename_prefix = string({ default: 'ComfyUI', multiline: false })
const fps = float({ default: 6, min: 0.01, max: 1000, step: 0.01 })

const frameMs = (perSecond: number) => Math.trunc(1000 / perSecond)

function result(images: Tensor, file: MadeFile): CallResult {
  const isMoving = images.shape[0] > 1
  return {
    outputs: [images],
    report: { images: [file], ...(isMoving && { animated: [{ kind: 'value', value: true }] as const }) },
  }
}

function checkImages({ batch, width, height, channels }: ImageView): 3 | 4 {
  if (channels !== 3 && channels !== 4) throw unknownPixels(channels)
  if (batch * width * height === 0) throw new NodeError('ValueError', 'an animation without pixels cannot be saved')
  return channels
}

export const saveAnimatedPng = defineNode({
  ...common,
  classType: 'SaveAnimatedPNG',
  displayName: 'Save Animated PNG',
  description: 'Writes the batch as one animated PNG that loops forever.',
  required: {
    images: image({}),
    filename_prefix,
    fps,
    compress_level: int({ default: 4, min: 0, max: 9, advanced: true }),
  },
  async run({ images, filename_prefix: prefix, fps: perSecond, compress_level: level }, context) {
    const view = viewOf(images)
    checkImages(view)
    const target = outputTarget(context, { prefix, size: view, extension: 'png', contentType: 'image/png' })
    const stills: Uint8Array[] = []
    for (let index = 0; index < view.batch; index++) {
      stills.push(await encodePng(view, { index, level, texts: [], checkpoint: context.checkpoint }))
      context.progress(index + 1, view.batch, { isOwn: true })
    }
    const bytes = assembleApng(stills, { frameMs: frameMs(perSecond), texts: madeFromTexts(context) })
    return result(images, await nameFile(bytes, target, context))
  },
})

const EFFORTS = { default: 4, fastest: 0, slowest: 6 } as const
const MAX_WEBP_SIDE = 16_383

function checkSides({ width, height }: ImageView): void {
  if (Math.max(width, height) <= MAX_WEBP_SIDE) return
  throw new NodeError('ValueError', `a WebP is at most ${MAX_WEBP_SIDE} pixels wide and high, not ${width} x ${height}`)
}

export const saveAnimatedWebp = defineNode({
  ...common,
  classType: 'SaveAnimatedWEBP',
  displayName: 'Save Animated WEBP',
  description: 'Writes the batch as one animated WebP that loops forever.',
  required: {
    images: image({}),
    filename_prefix,
    fps,
    lossless: boolean({ default: true }),
    quality: int({ default: 80, min: 0, max: 100 }),
    method: combo(['default', 'fastest', 'slowest']),
  },
  async run({ images, filename_prefix: prefix, fps: perSecond, lossless, quality, method }, context) {
    const view = viewOf(images)
    const target = outputTarget(context, { prefix, size: view, extension: 'webp', contentType: 'image/webp' })
    const hasAlpha = checkImages(view) === 4
    checkSides(view)
    const settings = { lossless, quality, effort: EFFORTS[method], frameMs: frameMs(perSecond) }
    const webp = await encodeWebp(view, settings, context.checkpoint)
    const { width, height } = view
    const noted = insertWebpExif(webp, madeFromTexts(context), { width, height, hasAlpha })
    return result(images, await nameFile(noted, target, context))
  },
})

// Images saved with more than 8 bit: PNG of 16, or EXR in linear light.

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

// Vector drawings as output files.

/** Drawings as texts. */
const svg: InputKind<readonly string[]> = {
  spec: ['SVG', {}],
  read(value: Value) {
    const data = typeof value === 'object' && value !== null ? (value as ValueObject).data : undefined
    if (Array.isArray(data) && data.every((text) => typeof text === 'string')) return data as string[]
    throw new NodeError('AttributeError', `'${valueTypeName(value)}' object has no attribute 'data'`)
  },
}

// The opening tag; a > inside a quoted attribute does not end it.
const OPENING_TAG = /<svg\b(?:"[^"]*"|'[^']*'|[^>"'])*>/

/** The drawing with a note of how it was made, right after its opening tag. */
export function withMetadata(drawing: string, json: string): string {
  // The end of a CDATA section inside the text is split over two sections: nothing in a workflow becomes markup.
  const safe = json.replaceAll(']]>', ']]]]><![CDATA[>')
  const note = `\n<metadata><![CDATA[\n${safe}\n]]></metadata>\n`
  return drawing.replace(OPENING_TAG, (tag) =>
    tag.endsWith('/>') ? `${tag.slice(0, -2)}>${note}</svg>` : `${tag}${note}`,
  )
}

const INDENT = 2

export const saveSvg = defineNode({
  classType: 'SaveSVGNode',
  displayName: 'Save SVG',
  category: 'image',
  description: 'Writes vector drawings as SVG outputs that remember their workflow.',
  style: 'schema',
  required: { svg, filename_prefix: string({ default: 'svg/ComfyUI', multiline: false }) },
  hidden,
  outputs: [{ type: 'SVG', name: 'svg' }],
  isOutputNode: true,
  cost: 'inline',
  async run({ svg: drawings, filename_prefix: prefix }, context) {
    const target = outputTarget(context, { prefix, extension: 'svg', contentType: 'image/svg+xml' })
    const json = pythonJsonDumps(Object.fromEntries(madeFrom(context)), { indent: INDENT })
    const encoded = drawings.map((drawing) => new Uint8Array(Buffer.from(withMetadata(drawing, json), 'utf8')))
    const images = await nameFiles(encoded, target, context)
    return { outputs: [{ data: [...drawings] }], report: { images } }
  },
})
