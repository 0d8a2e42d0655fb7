/** Saving and previewing images as PNG files. The bytes leave with the node's report; nothing is written to disk here. */
import { isJsonObject, type JsonObject } from '../../../lib/json/lossless-json.ts'
import { pythonJsonDumps } from '../../../lib/python/values.ts'
import { BATCH_TOKEN, type FileTags, type OutputName, readPrefix } from '../../files/output-name.ts'
import { encodePng } from '../../images/encode-png.ts'
import { costOf, defineNode } from '../../node/define-node.ts'
import { image, mask, ofType, string } from '../../node/input-kinds.ts'
import type { CallResult, MadeFile, NodeContext } from '../../node/node-context.ts'
import { inBlocks } from '../../tensor/channels.ts'
import { type ImageView, type PixelWork, type Tensor, viewOf } from '../../tensor/tensor.ts'

// What all nodes that save have in common: what a file remembers of how it was made, and how files are named. Numbers are
// taken when everything is encoded, so that a failed or cancelled save leaves no gap.

export const hidden = { prompt: 'PROMPT', extra_pnginfo: 'EXTRA_PNGINFO' } as const

/** The graph, then the members of `extra_pnginfo`. */
export function madeFrom({
  hidden: { prompt, extraPngInfo },
}: NodeContext): readonly (readonly [string, JsonObject])[] {
  const info = extraPngInfo()
  const members = isJsonObject(info) ? Object.entries(info) : []
  return [['prompt', prompt()], ...(members as [string, JsonObject][])]
}

/** The same as texts. */
export function madeFromTexts(context: NodeContext): FileTags {
  return madeFrom(context).map(([key, value]) => [key, pythonJsonDumps(value)] as const)
}

export interface SaveTarget extends OutputName {
  readonly folder: 'output' | 'temp'
  readonly extension: string
  readonly contentType: string
  /** Most names end in an underscore before the extension, some do not. */
  readonly ending: '_' | ''
}

interface TargetOptions {
  readonly prefix: string
  readonly size?: { readonly width: number; readonly height: number }
  readonly ending?: '_' | ''
  readonly extension: string
  readonly contentType: string
}

/** Where an output goes. Throws NodeError for a prefix that leads elsewhere. */
export function outputTarget(context: NodeContext, options: TargetOptions): SaveTarget {
  const { prefix, size = { width: 0, height: 0 }, ending = '_', extension, contentType } = options
  return { ...readPrefix(prefix, { ...size, now: context.now }), folder: 'output', ending, extension, contentType }
}

/** Where a preview goes; its name belongs to the node for as long as the engine lives. */
export function previewTarget(context: NodeContext, options: Omit<TargetOptions, 'prefix' | 'size'>, stem = 'ComfyUI') {
  return {
    ...outputTarget(context, { ...options, prefix: `${stem}_temp_${context.instanceLetters}` }),
    folder: 'temp',
  } as const
}

function fileName({ ending, extension }: SaveTarget, base: string, number: number): string {
  return `${base}_${String(number).padStart(5, '0')}${ending}.${extension}`
}

/** One image of a batch to encode. */
export interface EncodeOne {
  readonly index: number
  readonly texts: FileTags
  checkpoint(): void
}

/** Every image of a batch as a file that remembers how it was made; progress is told where there are several. */
export async function encodeAll(
  { batch }: Pick<ImageView, 'batch'>,
  encodeOne: (one: EncodeOne) => Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>>,
  context: NodeContext,
): Promise<Uint8Array<ArrayBuffer>[]> {
  const texts = madeFromTexts(context)
  const encoded: Uint8Array<ArrayBuffer>[] = []
  for (let index = 0; index < batch; index++) {
    encoded.push(await encodeOne({ index, texts, checkpoint: context.checkpoint }))
    if (batch > 1) context.progress(index + 1, batch, { isOwn: true })
  }
  return encoded
}

/** Names for the files of a batch. A name that counts its members itself starts anew every time, as in ComfyUI. */
export async function nameFiles(
  encoded: readonly Uint8Array<ArrayBuffer>[],
  target: SaveTarget,
  context: NodeContext,
): Promise<MadeFile[]> {
  const { folder, subfolder, baseName, contentType } = target
  const countsItself = baseName.includes(BATCH_TOKEN)
  const first = countsItself ? 1 : await context.reserveNumbers(folder, subfolder, baseName, encoded.length)
  return encoded.map((bytes, index) => {
    const filename = fileName(target, baseName.replaceAll(BATCH_TOKEN, String(index)), first + index)
    return { kind: 'file', filename, subfolder, folder, contentType, bytes }
  })
}

/** The name of the one file that a node makes; it holds a whole batch, so nothing in the name counts. */
export async function nameFile(
  bytes: Uint8Array<ArrayBuffer>,
  target: SaveTarget,
  context: NodeContext,
): Promise<MadeFile> {
  const { folder, subfolder, baseName, contentType } = target
  const number = await context.reserveNumbers(folder, subfolder, baseName, 1)
  return { kind: 'file', filename: fileName(target, baseName, number), subfolder, folder, contentType, bytes }
}

// Images shown beside a node while a workflow runs.

interface PreviewOptions {
  /** Begins the name. */
  readonly stem?: string
  /** What the files remember. */
  readonly texts: FileTags
}

/** Every image of the batch as a PNG in the temporary folder. */
export async function previewImages(
  images: Tensor,
  { stem, texts }: PreviewOptions,
  context: NodeContext,
): Promise<MadeFile[]> {
  const view = viewOf(images)
  const target = previewTarget(context, { extension: 'png', contentType: 'image/png' }, stem)
  const encoded: Uint8Array<ArrayBuffer>[] = []
  for (let index = 0; index < view.batch; index++) {
    encoded.push(await encodePng(view, { index, level: PREVIEW_LEVEL, texts, checkpoint: context.checkpoint }))
  }
  return nameFiles(encoded, target, context)
}

/** A mask as a picture: the same value in all three colours. */
function toGrey({ shape, data }: Tensor, { allocate, checkpoint }: PixelWork): Tensor {
  const [height, width] = shape.slice(-2)
  const grey = allocate([data.length / Math.max(1, height * width), height, width, 3])
  inBlocks(data.length, checkpoint, (from, to) => {
    for (let i = from; i < to; i++) grey.data.fill(data[i], i * 3, i * 3 + 3)
  })
  return grey
}

export const maskPreview = defineNode({
  classType: 'MaskPreview',
  displayName: 'Preview Mask',
  category: 'image/mask',
  description: 'Shows a mask while the workflow runs, without making it an output.',
  style: 'schema',
  required: { mask: mask({}) },
  hidden,
  outputs: [{ type: 'MASK', name: 'mask' }],
  isOutputNode: true,
  cost: ({ mask: tensor }) => costOf(tensor.data.length * 3),
  async run({ mask: tensor }, context) {
    const images = await previewImages(toGrey(tensor, context), { texts: madeFromTexts(context) }, context)
    return { outputs: [tensor], report: { images, animated: [{ kind: 'value', value: false }] } }
  },
})

export const imageCompare = defineNode({
  classType: 'ImageCompare',
  displayName: 'Compare Images',
  category: 'image',
  description: 'Shows two pictures side by side for comparison.',
  style: 'schema',
  experimental: true,
  required: { compare_view: ofType('IMAGECOMPARE', { socketless: true }) },
  optional: { image_a: image({}), image_b: image({}) },
  hidden,
  outputs: [],
  isOutputNode: true,
  cost: ({ image_a: a, image_b: b }) => costOf((a?.data.length ?? 0) + (b?.data.length ?? 0)),
  async run({ image_a: a, image_b: b }, context) {
    const texts = madeFromTexts(context)
    const show = async (images: Tensor | undefined, stem: string) =>
      images === undefined ? [] : previewImages(images, { stem, texts }, context)
    const report = { a_images: await show(a, 'comfy.compare.a'), b_images: await show(b, 'comfy.compare.b') }
    return { outputs: [], report }
  },
})

async function saveImages(
  images: Tensor,
  { target, level }: { readonly target: SaveTarget; readonly level: number },
  context: NodeContext,
): Promise<CallResult> {
  const view = viewOf(images)
  const encoded = await encodeAll(view, (one) => encodePng(view, { ...one, level }), context)
  return { outputs: [images], report: { images: await nameFiles(encoded, target, context) } }
}

const PNG = { extension: 'png', contentType: 'image/png' } as const
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
  async run({ images, filename_prefix: prefix }, context) {
    const target = outputTarget(context, { ...PNG, prefix, size: viewOf(images) })
    return saveImages(images, { target, level: SAVED_LEVEL }, context)
  },
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
    saveImages(images, { target: previewTarget(context, PNG), level: PREVIEW_LEVEL }, context),
})

// Pillow's own level, which upstream leaves as it is.
const LEVEL = 6

export const saveImageWebsocket = defineNode({
  classType: 'SaveImageWebsocket',
  displayName: 'Save Image (Websocket)',
  category: 'image',
  description: 'Sends every image in full to whoever watches the job; no file is made.',
  style: 'classic',
  required: { images: image() },
  outputs: [],
  isOutputNode: true,
  cost: ({ images }) => costOf(images.data.length),
  // Who watches changes from run to run: it always runs.
  changeValue: () => null,
  async run({ images }, context) {
    const view = viewOf(images)
    for (let index = 0; index < view.batch; index++) {
      const png = await encodePng(view, { index, level: LEVEL, texts: [], checkpoint: context.checkpoint })
      context.progress(index, view.batch, { picture: { contentType: 'image/png', bytes: png, isResult: true } })
    }
    return { outputs: [] }
  },
})
