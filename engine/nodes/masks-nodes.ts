/** Masks, transparency, and pictures laid over one another. */
import type { EngineNode } from '../define-node.ts'
import { joinImageWithAlpha, splitImageWithAlpha } from './masks/alpha.ts'
import { batchMasks } from './masks/batch-masks.ts'
import { imageColorToMask, imageToMask, maskToImage } from './masks/convert-masks.ts'
import { cropMask, featherMask, growMask, invertMask, solidMask, thresholdMask } from './masks/edit-masks.ts'
import { imageCompositeMasked } from './masks/image-composite-masked.ts'
import { latentCompositeMasked } from './masks/latent-composite-masked.ts'
import { maskComposite } from './masks/mask-composite.ts'
import { porterDuffImageComposite } from './masks/porter-duff.ts'

export const masksNodes: readonly EngineNode[] = [
  maskToImage,
  imageToMask,
  imageColorToMask,
  solidMask,
  invertMask,
  cropMask,
  maskComposite,
  featherMask,
  growMask,
  thresholdMask,
  imageCompositeMasked,
  porterDuffImageComposite,
  splitImageWithAlpha,
  joinImageWithAlpha,
  batchMasks,
  latentCompositeMasked,
]
