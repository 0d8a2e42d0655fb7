/** Every node class that comes with the engine. A new one is added here and nowhere else. */
import type { EngineNode } from '../define-node.ts'
import { audioNodes } from './audio-nodes.ts'
import { batchesNodes } from './batches-nodes.ts'
import { emptyImage } from './empty-image.ts'
import { filesNodes } from './files-nodes.ts'
import { filtersNodes } from './filters-nodes.ts'
import { geometryNodes } from './geometry-nodes.ts'
import { imageBlend } from './image-blend.ts'
import { imageCrop } from './image-crop.ts'
import { imageInvert } from './image-invert.ts'
import { imageScale, imageScaleBy } from './image-scale.ts'
import { latentsNodes } from './latents-nodes.ts'
import { loadImage, loadImageMask } from './load-image.ts'
import { masksNodes } from './masks-nodes.ts'
import { previewAny } from './preview-any.ts'
import {
  primitiveBoolean,
  primitiveFloat,
  primitiveInt,
  primitiveString,
  primitiveStringMultiline,
} from './primitives.ts'
import { previewImage, saveImage } from './save-image.ts'
import { stringConcatenate } from './string-concatenate.ts'
import { textNodes } from './text-nodes.ts'
import { videoNodes } from './video-nodes.ts'

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
