/**
 * Every node class that comes with the engine, in the order of the catalog. Most are listed by their group; a new class is
 * added to the list of its group.
 */
import type { EngineNode } from '../node/define-node.ts'
import { audioNodes } from './audio/audio-nodes.ts'
import { batchesNodes } from './batches/batches-nodes.ts'
import { filesNodes } from './files/files-nodes.ts'
import { loadImage, loadImageMask } from './files/load-image.ts'
import { previewImage, saveImage } from './files/save-image.ts'
import { imageInvert } from './filters/adjustments.ts'
import { filtersNodes } from './filters/filters-nodes.ts'
import { imageBlend } from './filters/image-blend.ts'
import { imageCrop } from './geometry/crop-images.ts'
import { geometryNodes } from './geometry/geometry-nodes.ts'
import { emptyImage } from './geometry/image-size.ts'
import { imageScale, imageScaleBy } from './geometry/scale-images.ts'
import { latentsNodes } from './latents/latents-nodes.ts'
import { masksNodes } from './masks/masks-nodes.ts'
import { runModel } from './run-model-node.ts'
import { sigmasNodes } from './sigmas/sigmas-nodes.ts'
import { previewAny } from './text/preview-any.ts'
import { stringConcatenate } from './text/string-nodes.ts'
import { textNodes } from './text/text-nodes.ts'
import {
  primitiveBoolean,
  primitiveFloat,
  primitiveInt,
  primitiveString,
  primitiveStringMultiline,
} from './values/primitives.ts'
import { valuesNodes } from './values/values-nodes.ts'
import { videoNodes } from './video/video-nodes.ts'

/** The classes of ComfyUI. */
export const BUILT_IN_NODES: readonly EngineNode[] = [
  loadImage,
  loadImageMask,
  emptyImage,
  saveImage,
  previewImage,
  previewAny,
  imageScale,
  imageScaleBy,
  imageCrop,
  imageInvert,
  imageBlend,
  primitiveString,
  primitiveStringMultiline,
  primitiveInt,
  primitiveFloat,
  primitiveBoolean,
  stringConcatenate,
  ...textNodes,
  ...valuesNodes,
  ...masksNodes,
  ...batchesNodes,
  ...latentsNodes,
  ...sigmasNodes,
  ...filesNodes,
  ...geometryNodes,
  ...filtersNodes,
  ...audioNodes,
  ...videoNodes,
]

/** Classes that ComfyUI does not have. */
export const OWN_NODES: readonly EngineNode[] = [runModel]
