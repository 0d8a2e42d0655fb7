/** Masks, transparency, and pictures laid over one another. */
import type { EngineNode } from '../../node/define-node.ts'
import { joinImageWithAlpha, splitImageWithAlpha } from './alpha.ts'
import { imageCompositeMasked, latentCompositeMasked } from './composite-masked.ts'
import { imageColorToMask, imageToMask, maskToImage } from './convert-masks.ts'
import { batchMasks, cropMask, featherMask, growMask, invertMask, solidMask, thresholdMask } from './edit-masks.ts'
import { maskComposite } from './mask-composite.ts'
import { porterDuffImageComposite } from './porter-duff-composite.ts'

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
