/**
 * Images to files and back on the engine thread, for nodes that mostly wait: pixels are converted a block per turn of
 * the event loop, and other runs are served in between.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { loadSharp } from '../../lib/files/load-sharp.ts'
import { NodeError } from '../node/node-error.ts'
import { BYTE_TO_FLOAT, toBytes } from '../tensor/bytes.ts'
import { BLOCK_ELEMENTS } from '../tensor/channels.ts'
import { type DecodeWork, type PixelWork, type Tensor, viewOf } from '../tensor/tensor.ts'
import { decoderBytes, tensorBytes } from './decode.ts'

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
export async function toPngs(images: Tensor, { checkpoint }: Pick<PixelWork, 'checkpoint'>) {
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
export async function fromFile(
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
