import { defineNode } from '../../node/define-node.ts'
import { image } from '../../node/input-kinds.ts'
import { boundingBox } from '../../node/value-kinds.ts'
import { cutWindow, sliceOf } from '../../tensor/window.ts'
import { previewImages } from '../files/previews.ts'

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
    const images = await previewImages(cropped, { texts: [] }, context)
    return { outputs: [cropped], report: { images, animated: [{ kind: 'value', value: false }] } }
  },
})
