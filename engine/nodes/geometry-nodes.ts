/** Every class of this group, in the order of the catalogue. */
import type { EngineNode } from '../define-node.ts'
import { cropByBBoxes } from './geometry/crop-by-boxes.ts'
import { imageCropV2 } from './geometry/crop-region.ts'
import { imageCropToMask } from './geometry/crop-to-mask.ts'
import { centerCropImages, randomCropImages } from './geometry/dataset-crops.ts'
import { drawBBoxes } from './geometry/draw-boxes.ts'
import { getImageSize } from './geometry/image-size.ts'
import { imagePadForOutpaint } from './geometry/pad-for-outpaint.ts'
import { resizeAndPadImage } from './geometry/resize-and-pad.ts'
import { resizeImagesByLongerEdge, resizeImagesByShorterEdge } from './geometry/resize-by-edge.ts'
import { resizeImageMask } from './geometry/resize-image-mask.ts'
import { fluxKontextImageScale, imageScaleToMaxDimension, imageScaleToTotalPixels } from './geometry/scale-to-size.ts'
import { imageStitch } from './geometry/stitch.ts'
import { textOverlay } from './geometry/text-overlay.ts'
import { imageMergeTileList, splitImageToTileList } from './geometry/tiles.ts'
import { imageFlip, imageRotate } from './geometry/turn.ts'

export const geometryNodes: readonly EngineNode[] = [
  imageScaleToTotalPixels,
  imageScaleToMaxDimension,
  resizeImageMask,
  resizeImagesByShorterEdge,
  resizeImagesByLongerEdge,
  resizeAndPadImage,
  fluxKontextImageScale,
  imageCropV2,
  imageCropToMask,
  centerCropImages,
  randomCropImages,
  imagePadForOutpaint,
  imageRotate,
  imageFlip,
  imageStitch,
  splitImageToTileList,
  imageMergeTileList,
  getImageSize,
  textOverlay,
  cropByBBoxes,
  drawBBoxes,
]
