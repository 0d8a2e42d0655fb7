/** Every node class that comes with the engine. A new one is added here and nowhere else. */
import type { EngineNode } from '../node/define-node.ts'
import { audioNodes } from './audio/audio-nodes.ts'
import { batchesNodes } from './batches/batches-nodes.ts'
import { filesNodes } from './files/files-nodes.ts'
import { loadImage, loadImageMask } from './files/load-image.ts'
import { previewImage, saveImage } from './files/save-image.ts'
import { filtersNodes } from './filters/filters-nodes.ts'
import { imageBlend } from './filters/image-blend.ts'
import { imageInvert } from './filters/image-invert.ts'
import { emptyImage } from './geometry/empty-image.ts'
import { geometryNodes } from './geometry/geometry-nodes.ts'
import { imageCrop } from './geometry/image-crop.ts'
import { imageScale, imageScaleBy } from './geometry/image-scale.ts'
import { latentsNodes } from './latents/latents-nodes.ts'
import { masksNodes } from './masks/masks-nodes.ts'
import { previewAny } from './text/preview-any.ts'
import { stringConcatenate } from './text/string-concatenate.ts'
import { textNodes } from './text/text-nodes.ts'
import {
  primitiveBoolean,
  primitiveFloat,
  primitiveInt,
  primitiveString,
  primitiveStringMultiline,
} from './values/primitives.ts'
import { videoNodes } from './video/video-nodes.ts'

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
  ...masksNodes,
  ...batchesNodes,
  ...latentsNodes,
  ...filesNodes,
  ...geometryNodes,
  ...filtersNodes,
  ...audioNodes,
  ...videoNodes,
]
