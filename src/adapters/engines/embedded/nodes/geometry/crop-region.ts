import { defineNode } from '../../define-node.ts'
import { numberedName } from '../../files/output-name.ts'
import { encodePng } from '../../images/encode-png.ts'
import { image } from '../../input-kinds.ts'
import type { MadeFile, NodeContext } from '../../node-context.ts'
import { type Tensor, viewOf } from '../../tensor/tensor.ts'
import { cutWindow, sliceOf } from '../../tensor/window.ts'
import { boundingBox } from '../../value-kinds.ts'

const PREVIEW_LEVEL = 1

/** The images as temporary files, without the workflow inside. */
async function previews(images: Tensor, context: NodeContext): Promise<MadeFile[]> {
  const view = viewOf(images)
  const name = `ComfyUI_temp_${context.instanceLetters}`
  const encoded: Uint8Array<ArrayBuffer>[] = []
  for (let index = 0; index < view.batch; index++) {
    encoded.push(await encodePng(view, { index, level: PREVIEW_LEVEL, texts: [], checkpoint: context.checkpoint }))
  }
  const first = await context.reserveNumbers('temp', '', name, view.batch)
  return encoded.map((bytes, index) => ({
    kind: 'file',
    filename: numberedName(name, first + index, 'png'),
    subfolder: '',
    folder: 'temp',
    contentType: 'image/png',
    bytes,
  }))
}

export const imageCropV2 = defineNode({
  classType: 'ImageCropV2',
  displayName: 'Crop Image',
  category: 'image/transform',
  description: 'Cuts a box out of every image; it comes out smaller where the image ends.',
  style: 'schema',
  hasIntermediateOutput: true,
  required: { image: image({}), crop_region: boundingBox({ component: 'ImageCrop' }) },
  outputs: [{ type: 'IMAGE' }],
  cost: 'compute',
  async run({ image: tensor, crop_region: box }, context) {
    const [, height, width] = tensor.shape
    const left = Math.min(box.x, width - 1)
    const top = Math.min(box.y, height - 1)
    const across = sliceOf(left, left + box.width, width)
    const down = sliceOf(top, top + box.height, height)
    const window = { x: across.from, y: down.from, width: across.count, height: down.count }
    const cropped = cutWindow(tensor, window, context)
    const images = await previews(cropped, context)
    return { outputs: [cropped], report: { images, animated: [{ kind: 'value', value: false }] } }
  },
})
