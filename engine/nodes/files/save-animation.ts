/** A batch of images as one moving picture. */
import { assembleApng } from '../../images/apng.ts'
import { encodePng } from '../../images/encode-png.ts'
import { encodeWebp } from '../../images/encode-webp.ts'
import { insertWebpExif } from '../../images/webp-exif.ts'
import { defineNode } from '../../node/define-node.ts'
import { boolean, combo, float, image, int, string } from '../../node/input-kinds.ts'
import type { CallResult, MadeFile } from '../../node/node-context.ts'
import { NodeError, unknownPixels } from '../../node/node-error.ts'
import { type ImageView, type Tensor, viewOf } from '../../tensor/tensor.ts'
import { hidden, madeFromTexts, nameFile, outputTarget } from './saving.ts'

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
