/**
 * A partner's model inside a workflow. The node carries input and pictures to the function that the service handed to the
 * engine, and the answer back; it occupies no thread while it waits.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { loadSharp } from '../../lib/files/load-sharp.ts'
import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../../lib/json/lossless-json.ts'
import { RUN_MODEL_CLASS } from '../graph/model-nodes.ts'
import { decoderBytes, tensorBytes } from '../images/decode.ts'
import { defineNode } from '../node/define-node.ts'
import { image, string } from '../node/input-kinds.ts'
import { NodeError } from '../node/node-error.ts'
import { BYTE_TO_FLOAT, toBytes } from '../tensor/bytes.ts'
import { BLOCK_ELEMENTS } from '../tensor/channels.ts'
import { type DecodeWork, type PixelWork, type Tensor, viewOf } from '../tensor/tensor.ts'
import type { Value } from '../values/value.ts'

// Images to files and back on the engine thread, for nodes that mostly wait: pixels are converted a block per turn of
// the event loop, and other runs are served in between.

async function inTurns(count: number, checkpoint: () => void, work: (from: number, to: number) => void): Promise<void> {
  for (let from = 0; from < count; from += BLOCK_ELEMENTS) {
    checkpoint()
    work(from, Math.min(from + BLOCK_ELEMENTS, count))
    await nextTurn()
  }
}

// Sent once over a network: small, but not at any price.
const PNG_LEVEL = 4

/** Every image of the batch as a PNG. */
async function toPngs(images: Tensor, { checkpoint }: Pick<PixelWork, 'checkpoint'>) {
  const { batch, height, width, channels, data } = viewOf(images)
  if ((channels !== 3 && channels !== 4) || width === 0 || height === 0) {
    throw new NodeError('ValueError', `images of [${images.shape.join(', ')}] cannot be sent as pictures`)
  }
  const count = height * width * channels
  const files: Uint8Array<ArrayBuffer>[] = []
  for (let index = 0; index < batch; index++) {
    const pixels = new Uint8Array(count)
    await inTurns(count, checkpoint, (from, to) =>
      toBytes(data, pixels, { from: index * count + from, to: from, count: to - from }),
    )
    const picture = loadSharp()(pixels, { raw: { width, height, channels }, limitInputPixels: false })
    files.push(new Uint8Array(await picture.png({ compressionLevel: PNG_LEVEL }).toBuffer()))
  }
  return files
}

/** The picture in a file as [1, height, width, 3]. */
async function fromFile(
  bytes: Uint8Array,
  { allocate, checkpoint, reserve, maxPixels }: DecodeWork & { readonly maxPixels: number },
): Promise<Tensor> {
  const fail = () => {
    throw new NodeError('PIL.UnidentifiedImageError', `a picture is damaged or has more than ${maxPixels} pixels`)
  }
  const metadata = await loadSharp()(bytes, { limitInputPixels: false }).metadata().catch(fail)
  if (metadata.width * metadata.height > maxPixels) fail()
  const giveBack = await reserve(decoderBytes(metadata), tensorBytes(metadata))
  try {
    const { data, info } = await loadSharp()(bytes, { limitInputPixels: maxPixels, failOn: 'error' })
      .autoOrient()
      .toColourspace('srgb')
      .removeAlpha()
      .raw({ depth: 'uchar' })
      .toBuffer({ resolveWithObject: true })
      .catch(fail)
    const result = allocate([1, info.height, info.width, 3])
    await inTurns(result.data.length, checkpoint, (from, to) => {
      for (let i = from; i < to; i++) result.data[i] = BYTE_TO_FLOAT[data[i]]
    })
    return result
  } finally {
    giveBack()
  }
}

function readInput(text: string): JsonValue {
  try {
    return parseLosslessJson(text)
  } catch (error) {
    throw new NodeError('ValueError', `input is not valid JSON: ${(error as Error).message}`)
  }
}

export const runModel = defineNode({
  classType: RUN_MODEL_CLASS,
  displayName: 'Run Model',
  category: 'partner',
  description: "Runs a partner's model and gives its answer, and the pictures in it.",
  style: 'schema',
  required: {
    model: string({ default: '', tooltip: 'The id of the model: provider/model.' }),
    input: string({ default: '{}', multiline: true, tooltip: "The model's input as JSON." }),
  },
  optional: { images: image({ tooltip: 'Pictures that belong to the input.' }) },
  outputs: [
    { type: 'STRING', name: 'output' },
    { type: 'IMAGE', name: 'images', isList: true },
  ],
  isApiNode: true,
  // Two equal nodes are two orders.
  isNotIdempotent: true,
  cost: 'inline',
  async run({ model, input, images }, context) {
    if (context.runModel === null) throw new NodeError('RuntimeError', 'models cannot be run from here')
    const request = { model: model.trim(), input: readInput(input) }
    if (request.model === '') throw new NodeError('ValueError', 'model is empty: give an id such as provider/model')
    const pictures = images === undefined ? [] : await toPngs(images, context)
    const answer = await context.runModel({ ...request, images: pictures })
    context.checkpoint()
    const made: Value[] = []
    for (const bytes of answer.images) {
      made.push(await fromFile(bytes, { ...context, maxPixels: context.maxImagePixels }))
    }
    return { outputs: [stringifyLosslessJson(answer.output), made] }
  },
})
