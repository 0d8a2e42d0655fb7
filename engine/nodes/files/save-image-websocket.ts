import { encodePng } from '../../images/encode-png.ts'
import { defineNode } from '../../node/define-node.ts'
import { costOf } from '../../node/image-cost.ts'
import { image } from '../../node/input-kinds.ts'
import { viewOf } from '../../tensor/tensor.ts'

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
