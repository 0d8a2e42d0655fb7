/** Nodes that read one picture: uploaded, made by an earlier job, or taken with a camera. */
import { type DecodedImage, toImageTensor, toMaskTensor, withDecodedImage } from '../../images/decode.ts'
import { defineNode } from '../../node/define-node.ts'
import {
  boolean,
  choice,
  color,
  type InputKind,
  image,
  inputFile,
  int,
  MAX_RESOLUTION,
  string,
} from '../../node/input-kinds.ts'
import type { InputFile, NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { inBlocks } from '../../tensor/channels.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import { type Tensor, viewOf } from '../../tensor/tensor.ts'
import { previewImages } from './save-image.ts'

const ALPHA = 3
type Files = Pick<NodeContext, 'files'>

/** Throws NodeError when the run holds no such file. */
export function findInput(kind: 'image' | 'audio' | 'video' | 'latent', name: string, { files }: Files): InputFile {
  const file = files.find(name)
  if (file === null) throw new NodeError('FileNotFoundError', `Invalid ${kind} file: ${name}`)
  return file
}

const findPicture = (name: string, context: Files): InputFile => findInput('image', name, context)

function decodePicture<Result>(
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

const webcamSide = () => int({ default: 0, min: 0, max: MAX_RESOLUTION, step: 1 })

export const webcamCapture = defineNode({
  classType: 'WebcamCapture',
  displayName: 'Webcam Capture',
  category: 'image',
  description: 'Reads the picture that an editor took with a camera and uploaded.',
  style: 'classic',
  required: {
    image: { spec: ['WEBCAM', {}], read: string().read },
    width: webcamSide(),
    height: webcamSide(),
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

// A painted layer over a picture, or over a canvas of one colour.

/** `#rrggbb`; anything else is black, as upstream. */
function readColor(text: string): readonly number[] {
  const hex = /^#*([0-9a-fA-F]{6})$/.exec(text)?.[1] ?? '000000'
  return [0, 2, 4].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
}

function canvas(width: number, height: number, text: string, { allocate, checkpoint }: NodeContext): Tensor {
  const result = allocate([1, height, width, 3])
  const rgb = readColor(text)
  inBlocks(width * height, checkpoint, (from, to) => {
    for (let i = from * 3; i < to * 3; i++) result.data[i] = rgb[i % 3]
  })
  return result
}

/** The first image of a batch, without what is not colour. */
function firstImage(images: Tensor, { allocate, checkpoint }: NodeContext): Tensor {
  const { height, width, channels, data } = viewOf(images)
  const result = allocate([1, height, width, Math.min(channels, 3)])
  const kept = result.shape[3]
  inBlocks(height * width, checkpoint, (from, to) => {
    for (let i = from; i < to; i++) for (let c = 0; c < kept; c++) result.data[i * kept + c] = data[i * channels + c]
  })
  return result
}

function toLayer({ frames, width, height, channels, pixels, scale }: DecodedImage, context: NodeContext): Tensor {
  const layer = context.allocate([1, height, width, 4])
  inBlocks((pixels.length / frames / channels) | 0, context.checkpoint, (from, to) => {
    for (let i = from; i < to; i++) {
      for (let c = 0; c < 4; c++) layer.data[i * 4 + c] = c < channels ? pixels[i * channels + c] / scale : 1
    }
  })
  return layer
}

/** Red, green, blue and alpha of the layer in the size of the base. */
async function readLayer(name: string, base: Tensor, context: NodeContext): Promise<Tensor> {
  const layer = await decodePicture(name, context, (image) => toLayer(image, context))
  const [, height, width] = layer.shape
  const [, baseHeight, baseWidth] = base.shape
  if (baseHeight === height && baseWidth === width) return layer
  return upscale(layer, { width: baseWidth, height: baseHeight, method: 'lanczos', crop: 'disabled' }, context)
}

interface Painted {
  readonly picture: Tensor
  readonly mask: Tensor
}

function lay(layer: Tensor, base: Tensor, { allocate, checkpoint }: NodeContext): Painted {
  const [, height, width, channels] = base.shape
  const picture = allocate([1, height, width, 3])
  const mask = allocate([1, height, width])
  inBlocks(height * width, checkpoint, (from, to) => {
    for (let i = from; i < to; i++) {
      const alpha = layer.data[i * 4 + 3]
      mask.data[i] = alpha
      for (let c = 0; c < 3; c++) {
        const below = base.data[i * channels + Math.min(c, channels - 1)]
        picture.data[i * 3 + c] = layer.data[i * 4 + c] * alpha + below * (1 - alpha)
      }
    }
  })
  return { picture, mask }
}

function unpainted(base: Tensor, { allocate }: NodeContext): Painted {
  const mask = allocate(base.shape.slice(0, 3))
  mask.data.fill(0)
  return { picture: base, mask }
}

const canvasSide = () => int({ default: 512, min: 64, max: 4096, step: 64, hidden: true, socketless: true })

export const painter = defineNode({
  classType: 'Painter',
  displayName: 'Painter',
  category: 'image',
  description:
    'Lays what was painted in the editor over a picture or an empty canvas; the mask is where it was painted.',
  style: 'schema',
  hasIntermediateOutput: true,
  required: {
    mask: string({ default: '', multiline: false, socketless: true, widgetType: 'PAINTER', image_upload: true }),
    width: canvasSide(),
    height: canvasSide(),
    bg_color: color({ default: '#000000', socketless: true }),
  },
  optional: { image: image({}) },
  outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
  cost: 'compute',
  changeValue({ mask }, context) {
    if (mask === undefined) return null
    return mask === '' ? '' : findPicture(mask, context).hash
  },
  async run({ mask: name, width, height, bg_color: background, image: images }, context) {
    const base = images === undefined ? canvas(width, height, background, context) : firstImage(images, context)
    const { picture, mask } =
      name === '' ? unpainted(base, context) : lay(await readLayer(name, base, context), base, context)
    const previews = await previewImages(picture, { texts: [] }, context)
    return { outputs: [picture, mask], report: { images: previews, animated: [{ kind: 'value', value: false }] } }
  },
})
