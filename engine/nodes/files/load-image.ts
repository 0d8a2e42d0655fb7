/** Nodes that read one picture: uploaded, made by an earlier job, or taken with a camera. */
import { type DecodedImage, toImageTensor, toMaskTensor, withDecodedImage } from '../../images/decode.ts'
import { defineNode } from '../../node/define-node.ts'
import { boolean, choice, type InputKind, inputFile, int, MAX_RESOLUTION, string } from '../../node/input-kinds.ts'
import type { InputFile, NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'

const ALPHA = 3
type Files = Pick<NodeContext, 'files'>

/** Throws NodeError when the run holds no such file. */
export function findInput(kind: 'image' | 'audio' | 'video' | 'latent', name: string, { files }: Files): InputFile {
  const file = files.find(name)
  if (file === null) throw new NodeError('FileNotFoundError', `Invalid ${kind} file: ${name}`)
  return file
}

export const findPicture = (name: string, context: Files): InputFile => findInput('image', name, context)

export function decodePicture<Result>(
  name: string,
  context: NodeContext,
  use: (image: DecodedImage) => Result,
): Promise<Result> {
  const options = { name, maxPixels: context.maxImagePixels }
  return withDecodedImage(findPicture(name, context), options, { work: context, use })
}

/** Equal bytes give equal pictures, whatever the file is called. */
const contentOf = ({ image }: { readonly image?: string }, context: Files) =>
  image === undefined ? null : findPicture(image, context).hash

/** A picture and its alpha channel as a mask. */
const PICTURE_AND_MASK = {
  outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
  selfChecked: ['image'],
  cost: 'compute',
  changeValue: contentOf,
  run({ image }: { readonly image: string }, context: NodeContext) {
    return decodePicture(image, context, (decoded) => ({
      outputs: [toImageTensor(decoded, context), toMaskTensor(decoded, ALPHA, context)],
    }))
  },
} as const

export const loadImage = defineNode({
  classType: 'LoadImage',
  displayName: 'Load Image',
  category: 'image',
  description: 'Reads an uploaded picture; every frame of an animation becomes one image of the batch.',
  style: 'classic',
  required: { image: inputFile({ image_upload: true }) },
  ...PICTURE_AND_MASK,
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
    return decodePicture(image, context, (decoded) => ({
      outputs: [toMaskTensor(decoded, CHANNELS[channel], context)],
    }))
  },
})

const outputFile: InputKind<string> = {
  spec: [
    'COMBO',
    {
      image_upload: true,
      image_folder: 'output',
      remote: { route: '/internal/files/output', refresh_button: true, control_after_refresh: 'first' },
    },
  ],
  read: string().read,
}

export const loadImageOutput = defineNode({
  classType: 'LoadImageOutput',
  displayName: 'Load Image (from Outputs)',
  category: 'image',
  description: 'Reads a picture that an earlier job made; its name ends in " [output]".',
  style: 'classic',
  experimental: true,
  required: { image: outputFile },
  ...PICTURE_AND_MASK,
})

const side = () => int({ default: 0, min: 0, max: MAX_RESOLUTION, step: 1 })

export const webcamCapture = defineNode({
  classType: 'WebcamCapture',
  displayName: 'Webcam Capture',
  category: 'image',
  description: 'Reads the picture that an editor took with a camera and uploaded.',
  style: 'classic',
  required: {
    image: { spec: ['WEBCAM', {}], read: string().read },
    width: side(),
    height: side(),
    capture_on_queue: boolean({ default: true }),
  },
  outputs: [{ type: 'IMAGE' }],
  selfChecked: ['image'],
  cost: 'compute',
  changeValue: contentOf,
  async run({ image }, context) {
    return decodePicture(image, context, (decoded) => ({ outputs: [toImageTensor(decoded, context)] }))
  },
})
