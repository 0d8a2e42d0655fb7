/** Latents and noise levels, as far as they need no model. */
import type { EngineNode } from '../define-node.ts'
import {
  extendIntermediateSigmas,
  flipSigmas,
  manualSigmas,
  setFirstSigma,
  splitSigmas,
  splitSigmasDenoise,
} from './latents/edit-sigmas.ts'
import { emptyFlux2LatentImage, emptyLatentImage, emptySd3LatentImage } from './latents/empty-latents.ts'
import { latentAdd, latentBlend, latentMultiply, latentSubtract } from './latents/latent-arithmetic.ts'
import { latentConcat, latentCut } from './latents/latent-axes.ts'
import {
  batchLatents,
  latentBatch,
  latentBatchSeedBehavior,
  latentFromBatch,
  repeatLatentBatch,
  setLatentNoiseMask,
} from './latents/latent-batches.ts'
import { latentComposite } from './latents/latent-composite.ts'
import { loadLatent, saveLatent } from './latents/latent-files.ts'
import { latentInterpolate } from './latents/latent-interpolate.ts'
import { rebatchLatents } from './latents/rebatch-latents.ts'
import {
  exponentialScheduler,
  karrasScheduler,
  laplaceScheduler,
  polyexponentialScheduler,
  vpScheduler,
} from './latents/scheduler-nodes.ts'
import { latentCrop, latentFlip, latentRotate } from './latents/turn-latents.ts'
import { latentUpscale, latentUpscaleBy } from './latents/upscale-latents.ts'

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
  karrasScheduler,
  exponentialScheduler,
  polyexponentialScheduler,
  vpScheduler,
  laplaceScheduler,
  splitSigmas,
  splitSigmasDenoise,
  flipSigmas,
  setFirstSigma,
  extendIntermediateSigmas,
  manualSigmas,
]
