/** Training images as a folder: all pictures below one name of the inputs, or files with plain numbers in the outputs. */

import { readPrefix } from '../../files/output-name.ts'
import { toImageTensor, withDecodedImage } from '../../images/decode.ts'
import { encodePng } from '../../images/encode-png.ts'
import { defineListNode, defineNode } from '../../node/define-node.ts'
import { combo, type InputKind, image, string } from '../../node/input-kinds.ts'
import type { InputFile, MadeFile, NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { sliceBatch } from '../../tensor/batch-axis.ts'
import { type Tensor, viewOf } from '../../tensor/tensor.ts'
import { hidden, madeFromTexts } from '../files/save-image.ts'

/** The folders are those that the run is given: the list of choices stays empty. */
const folderName: InputKind<string> = {
  spec: ['COMBO', { multiselect: false, options: [] }],
  read: string().read,
}

const PICTURE = /\.(?:png|jpe?g|webp)$/i

interface FoundPicture {
  readonly name: string
  readonly file: InputFile
}

function picturesOf(folder: string, { files }: Pick<NodeContext, 'files'>): FoundPicture[] {
  const found: FoundPicture[] = []
  // Directories have no order of their own: names give the same one everywhere.
  const names = files.list(folder).filter((name) => PICTURE.test(name))
  for (const name of names.sort()) {
    const file = files.find(name)
    if (file !== null) found.push({ name, file })
  }
  if (found.length === 0) throw new NodeError('FileNotFoundError', `No images found in the input folder: ${folder}`)
  return found
}

export const loadImageDataSetFromFolder = defineNode({
  classType: 'LoadImageDataSetFromFolder',
  displayName: 'Load Image (from Folder)',
  category: 'image',
  description: 'Reads all pictures of an input folder as a list.',
  style: 'schema',
  experimental: true,
  selfChecked: ['folder'],
  fileInputs: [],
  folderInputs: ['folder'],
  required: { folder: folderName },
  outputs: [{ type: 'IMAGE', name: 'images', isList: true }],
  cost: 'compute',
  changeValue: ({ folder }, context) =>
    folder === undefined
      ? null
      : picturesOf(folder, context)
          .map(({ name, file }) => `${name} ${file.hash}`)
          .join('\n'),
  async run({ folder }, context) {
    const images: Tensor[] = []
    for (const { name, file } of picturesOf(folder, context)) {
      context.checkpoint()
      const whole = await withDecodedImage(
        file,
        { name, maxPixels: context.maxImagePixels },
        { work: context, use: (decoded) => toImageTensor(decoded, context) },
      )
      // Of an animation, the first picture.
      images.push(sliceBatch(whole, 0, 1))
    }
    return { outputs: [images] }
  },
})

const five = (number: number) => String(number).padStart(5, '0')
const LEVEL = 4

async function encodeAll(images: readonly Tensor[], context: NodeContext): Promise<Uint8Array<ArrayBuffer>[]> {
  const texts = madeFromTexts(context)
  const total = images.reduce((sum, { shape }) => sum + shape[0], 0)
  const encoded: Uint8Array<ArrayBuffer>[] = []
  for (const batch of images) {
    for (let index = 0; index < batch.shape[0]; index++) {
      encoded.push(await encodePng(viewOf(batch), { index, level: LEVEL, texts, checkpoint: context.checkpoint }))
      context.progress(encoded.length, total, { isOwn: true })
    }
  }
  return encoded
}

export const saveImageDataSetToFolder = defineListNode({
  classType: 'SaveImageDataSetToFolder',
  displayName: 'Save Image (to Folder) (DEPRECATED)',
  category: 'image',
  description: 'Writes images as numbered PNG outputs into a folder.',
  style: 'schema',
  deprecated: true,
  experimental: true,
  required: {
    images: image({}),
    folder_name: string({ default: 'dataset', multiline: false }),
    filename_prefix: string({ advanced: true, default: 'image', multiline: false }),
    mode: combo(['overwrite', 'increment'], { default: 'overwrite' }),
  },
  hidden,
  outputs: [],
  isOutputNode: true,
  cost: 'compute',
  async run({ images, folder_name: [folder], filename_prefix: [prefix], mode: [mode] }, context) {
    const { subfolder, baseName } = readPrefix(`${folder}/${prefix}`, { width: 0, height: 0, now: context.now })
    const encoded = await encodeAll(images, context)
    const counter =
      mode === 'increment' ? `${five(await context.reserveNumbers('output', subfolder, baseName, 1))}_` : ''
    // Upstream writes to disk and shows nothing; here a file that is not shown would not exist.
    const files = encoded.map((bytes, index): MadeFile => {
      const filename = `${baseName}_${counter}${five(index)}.png`
      return { kind: 'file', filename, subfolder, folder: 'output', contentType: 'image/png', bytes }
    })
    return { outputs: [], report: { images: files } }
  },
})
