/** Latents in files of their own, in the form that other installations read. */

import { encodeSafetensors, openSafetensors } from '../../files/safetensors.ts'
import { costOf, defineNode } from '../../node/define-node.ts'
import { type InputKind, string } from '../../node/input-kinds.ts'
import { mapBlocks } from '../../tensor/map-pixels.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'
import { findInput } from '../files/load-image.ts'
import { hidden, madeFromTexts, nameFile, outputTarget } from '../files/saving.ts'
import { latent } from './latent.ts'

const SAMPLES = 'latent_tensor'
// Its presence says that the samples are as samplers use them.
const CURRENT_FORMAT = 'latent_format_version_0'

export const saveLatent = defineNode({
  classType: 'SaveLatent',
  displayName: 'Save Latent',
  category: 'model/latent',
  description: 'Writes latents as an output file that remembers its workflow.',
  style: 'classic',
  required: { samples: latent(), filename_prefix: string({ default: 'latents/ComfyUI' }) },
  hidden,
  outputs: [{ type: 'LATENT', name: 'samples' }],
  isOutputNode: true,
  cost: ({ samples: { samples } }) => costOf(samples.data.length),
  async run({ samples: given, filename_prefix: prefix }, context) {
    const { shape, data } = given.samples
    const target = outputTarget(context, { prefix, extension: 'latent', contentType: 'application/x-latent' })
    const tensors = [
      { name: CURRENT_FORMAT, shape: [0], data: new Float32Array() },
      { name: SAMPLES, shape, data },
    ]
    const file = await nameFile(encodeSafetensors(tensors, madeFromTexts(context)), target, context)
    return { outputs: [given], report: { latents: [file] } }
  },
})

/** The list of choices stays empty: names are judged against the files that the run is given. */
const latentFile: InputKind<string> = { spec: [[]], read: string().read }

// Files of the first format hold samples scaled for storage.
const OLD_SCALE = 0.18215

function unscale(samples: Tensor, work: PixelWork): Tensor {
  const factor = Math.fround(1 / OLD_SCALE)
  return mapBlocks(samples, work, (from, to, { start, end }) => {
    for (let i = start; i < end; i++) to[i] = from[i] * factor
  })
}

export const loadLatent = defineNode({
  classType: 'LoadLatent',
  displayName: 'Load Latent',
  category: 'model/latent',
  description: 'Reads an uploaded latent file.',
  style: 'classic',
  required: { latent: latentFile },
  outputs: [{ type: 'LATENT' }],
  selfChecked: ['latent'],
  cost: 'compute',
  changeValue: ({ latent: name }, context) => (name === undefined ? null : findInput('latent', name, context).hash),
  async run({ latent: name }, context) {
    await using file = await openSafetensors(findInput('latent', name, context).path)
    const samples = await file.read(SAMPLES, context)
    return { outputs: [{ samples: file.has(CURRENT_FORMAT) ? samples : unscale(samples, context) }] }
  },
})
