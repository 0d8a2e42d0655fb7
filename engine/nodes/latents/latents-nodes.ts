/** Latents, as far as they need no model. */
import type { EngineNode } from '../../node/define-node.ts'
import { emptyFlux2LatentImage, emptyLatentImage, emptySd3LatentImage } from './empty-latents.ts'
import { latentAdd, latentBlend, latentMultiply, latentSubtract } from './latent-arithmetic.ts'
import { latentConcat, latentCut } from './latent-axes.ts'
import {
  batchLatents,
  latentBatch,
  latentBatchSeedBehavior,
  latentFromBatch,
  repeatLatentBatch,
  setLatentNoiseMask,
} from './latent-batches.ts'
import { latentComposite } from './latent-composite.ts'
import { loadLatent, saveLatent } from './latent-files.ts'
import { latentInterpolate } from './latent-interpolate.ts'
import { rebatchLatents } from './rebatch-latents.ts'
import { latentCrop, latentFlip, latentRotate } from './transform-latents.ts'
import { latentUpscale, latentUpscaleBy } from './upscale-latents.ts'

export const latentsNodes: readonly EngineNode[] = [
  emptyLatentImage,
  emptySd3LatentImage,
  emptyFlux2LatentImage,
  latentUpscale,
  latentUpscaleBy,
  latentFromBatch,
  repeatLatentBatch,
  latentRotate,
  latentFlip,
  latentCrop,
  latentComposite,
  latentBlend,
  latentAdd,
  latentSubtract,
  latentMultiply,
  latentInterpolate,
  latentBatch,
  latentBatchSeedBehavior,
  latentConcat,
  latentCut,
  setLatentNoiseMask,
  rebatchLatents,
  batchLatents,
  saveLatent,
  loadLatent,
]
