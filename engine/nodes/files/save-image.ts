/** Saving and previewing images as PNG files. The bytes leave with the node's report; nothing is written to disk here. */

import { encodePng } from '../../images/encode-png.ts'
import { costOf, defineNode } from '../../node/define-node.ts'
import { image, string } from '../../node/input-kinds.ts'
import type { CallResult, NodeContext } from '../../node/node-context.ts'
import { type Tensor, viewOf } from '../../tensor/tensor.ts'
import { encodeAll, hidden, nameFiles, outputTarget, previewTarget, type SaveTarget } from './saving.ts'

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
