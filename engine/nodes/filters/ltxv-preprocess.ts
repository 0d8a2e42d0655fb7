/**
 * Makes pictures look as if they came out of a video, which is what the model was trained on. Upstream sends them through
 * x264; here the loss of a key frame is computed in place, so that no encoder has to be installed and the result is the same
 * everywhere. It is of the same kind and size as x264's, not equal to it.
 */
import { defineNode } from '../../node/define-node.ts'
import { image, int } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { sliceBatch } from '../../tensor/batch-axis.ts'
import { quantiserFor, throughKeyFrame } from '../../tensor/codec/key-frame.ts'
import { fromYuv, toYuv } from '../../tensor/codec/yuv-planes.ts'
import { viewOf } from '../../tensor/tensor.ts'

export const ltxvPreprocess = defineNode({
  classType: 'LTXVPreprocess',
  displayName: 'LTXV Preprocess',
  category: 'video/preprocessors',
  description: 'Gives images the traces of video compression, the more the higher the number.',
  style: 'schema',
  required: { image: image({}), img_compression: int({ default: 35, min: 0, max: 100 }) },
  outputs: [{ type: 'IMAGE', name: 'output_image' }],
  cost: ({ img_compression: rateFactor }) => (rateFactor === 0 ? 'inline' : 'compute'),
  run({ image: tensor, img_compression: rateFactor }, { allocate, checkpoint, progress }) {
    if (rateFactor === 0) return { outputs: [tensor] }
    const { batch, height, width, channels } = viewOf(tensor)
    // Four pixels share one colour, so an odd row or column is dropped.
    const [evenWidth, evenHeight] = [width - (width % 2), height - (height % 2)]
    if (evenWidth === 0 || evenHeight === 0 || channels !== 3) {
      const shape = `[${tensor.shape.join(', ')}]`
      throw new NodeError('ValueError', `images of ${shape} cannot be compressed: two pixels a side and RGB are needed`)
    }
    const result = allocate([batch, evenHeight, evenWidth, 3])
    for (let index = 0; index < batch; index++) {
      const source = { data: sliceBatch(tensor, index, 1).data, rowStride: width * channels, channels }
      const picture = toYuv(source, { width: evenWidth, height: evenHeight, checkpoint })
      const coded = throughKeyFrame(picture, quantiserFor(rateFactor), checkpoint)
      fromYuv(coded, sliceBatch(result, index, 1).data, checkpoint)
      if (batch > 1) progress(index + 1, batch)
    }
    return { outputs: [result] }
  },
})
