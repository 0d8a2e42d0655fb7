import { type DecodedImage, toImageTensor, toMaskTensor, withDecodedImage } from '../../images/decode.ts'
import { defineNode } from '../../node/define-node.ts'
import { choice, inputFile } from '../../node/input-kinds.ts'
import type { InputFile, NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'

function findImage(name: string, context: Pick<NodeContext, 'files'>): InputFile {
  const file = context.files.find(name)
  if (file === null) throw new NodeError('FileNotFoundError', `Invalid image file: ${name}`)
  return file
}

/** Equal bytes give equal pictures, whatever the file is called. */
function contentOf({ image }: { readonly image?: string }, context: Pick<NodeContext, 'files'>): string | null {
  return image === undefined ? null : findImage(image, context).hash
}

function decode<Result>(name: string, context: NodeContext, use: (image: DecodedImage) => Result): Promise<Result> {
  const options = { name, maxPixels: context.maxImagePixels }
  return withDecodedImage(findImage(name, context), options, { work: context, use })
}

const ALPHA = 3

export const loadImage = defineNode({
  classType: 'LoadImage',
  displayName: 'Load Image',
  category: 'image',
  description: 'Reads an uploaded picture; every frame of an animation becomes one image of the batch.',
  style: 'classic',
  required: { image: inputFile({ image_upload: true }) },
  outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
  selfChecked: ['image'],
  cost: 'compute',
  changeValue: contentOf,
  async run({ image }, context) {
    return decode(image, context, (decoded) => ({
      outputs: [toImageTensor(decoded, context), toMaskTensor(decoded, ALPHA, context)],
    }))
  },
})

const CHANNELS = { alpha: ALPHA, red: 0, green: 1, blue: 2 } as const

export const loadImageMask = defineNode({
  classType: 'LoadImageMask',
  displayName: 'Load Image (as Mask)',
  category: 'image',
  description: 'Reads one channel of an uploaded picture as a mask.',
  style: 'classic',
  required: {
    image: inputFile({ image_upload: true }),
    channel: choice(['alpha', 'red', 'green', 'blue']),
  },
  outputs: [{ type: 'MASK' }],
  selfChecked: ['image'],
  cost: 'compute',
  changeValue: contentOf,
  async run({ image, channel }, context) {
    return decode(image, context, (decoded) => ({ outputs: [toMaskTensor(decoded, CHANNELS[channel], context)] }))
  },
})
