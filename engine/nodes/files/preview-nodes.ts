/** Images shown beside a node while a workflow runs. */
import type { FileTags } from '../../files/file-tags.ts'
import { encodePng } from '../../images/encode-png.ts'
import { costOf, defineNode } from '../../node/define-node.ts'
import { image, mask, ofType } from '../../node/input-kinds.ts'
import type { MadeFile, NodeContext } from '../../node/node-context.ts'
import { inBlocks } from '../../tensor/map-pixels.ts'
import { type PixelWork, type Tensor, viewOf } from '../../tensor/tensor.ts'
import { hidden, madeFromTexts, nameFiles, previewTarget } from './saving.ts'

const PREVIEW_LEVEL = 1

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
