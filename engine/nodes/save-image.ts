/** Saving and previewing images as PNG files. The bytes leave with the node's report; nothing is written to disk here. */

import { isJsonObject, type JsonObject } from '../../lib/json/lossless-json.ts'
import { pythonJsonDumps } from '../../lib/python/values.ts'
import { defineNode } from '../define-node.ts'
import { BATCH_TOKEN, numberedName, readPrefix } from '../files/output-name.ts'
import { encodePng } from '../images/encode-png.ts'
import type { PngText } from '../images/png-text.ts'
import { image, string } from '../input-kinds.ts'
import type { CallResult, MadeFile, NodeContext } from '../node-context.ts'
import { type Tensor, viewOf } from '../tensor/tensor.ts'
import { costOf } from './image-cost.ts'

interface SaveOptions {
  readonly folder: 'output' | 'temp'
  readonly prefix: string
  readonly level: number
}

const hidden = { prompt: 'PROMPT', extra_pnginfo: 'EXTRA_PNGINFO' } as const

/** Every file tells how it was made, in the form that editors read back. */
function metadata({ hidden: { prompt, extraPngInfo } }: NodeContext): PngText {
  const info = extraPngInfo()
  const members: JsonObject = isJsonObject(info) ? info : {}
  const extra = Object.entries(members).map(([key, value]) => [key, pythonJsonDumps(value)] as const)
  return [['prompt', pythonJsonDumps(prompt())], ...extra]
}

/** Numbers are shared by everything of one name; a name that counts by itself starts anew every time, as in ComfyUI. */
function firstNumber(
  context: NodeContext,
  { folder }: SaveOptions,
  name: { subfolder: string; baseName: string; count: number },
) {
  if (name.baseName.includes(BATCH_TOKEN)) return 1
  return context.reserveNumbers(folder, name.subfolder, name.baseName, name.count)
}

async function saveImages(images: Tensor, options: SaveOptions, context: NodeContext): Promise<CallResult> {
  const view = viewOf(images)
  const { width, height, batch } = view
  const { subfolder, baseName } = readPrefix(options.prefix, { width, height, now: context.now })
  const texts = metadata(context)
  const encoded: Uint8Array<ArrayBuffer>[] = []
  for (let index = 0; index < batch; index++) {
    encoded.push(await encodePng(view, { index, level: options.level, texts, checkpoint: context.checkpoint }))
    if (batch > 1) context.progress(index + 1, batch, { isOwn: true })
  }
  // Numbers are taken last: a failed or cancelled save leaves no gap.
  const first = await firstNumber(context, options, { subfolder, baseName, count: batch })
  const files = encoded.map((bytes, index): MadeFile => {
    const filename = numberedName(baseName.replaceAll(BATCH_TOKEN, String(index)), first + index, 'png')
    return { kind: 'file', filename, subfolder, folder: options.folder, contentType: 'image/png', bytes }
  })
  return { outputs: [images], report: { images: files } }
}

const SAVED_LEVEL = 4
const PREVIEW_LEVEL = 1

export const saveImage = defineNode({
  classType: 'SaveImage',
  displayName: 'Save Image',
  category: 'image',
  description: 'Writes every image of the batch as a PNG output that remembers its workflow.',
  style: 'classic',
  required: { images: image({}), filename_prefix: string({ default: 'ComfyUI' }) },
  hidden,
  outputs: [{ type: 'IMAGE', name: 'images' }],
  isOutputNode: true,
  cost: ({ images }) => costOf(images.data.length),
  run: ({ images, filename_prefix: prefix }, context) =>
    saveImages(images, { folder: 'output', prefix, level: SAVED_LEVEL }, context),
})

export const previewImage = defineNode({
  classType: 'PreviewImage',
  displayName: 'Preview Image',
  category: 'image',
  description: 'Shows the images while the workflow runs, without making them outputs.',
  style: 'classic',
  required: { images: image() },
  hidden,
  outputs: [{ type: 'IMAGE', name: 'images' }],
  isOutputNode: true,
  cost: ({ images }) => costOf(images.data.length),
  run: ({ images }, context) =>
    saveImages(
      images,
      { folder: 'temp', prefix: `ComfyUI_temp_${context.instanceLetters}`, level: PREVIEW_LEVEL },
      context,
    ),
})
