/** The size and position of pixels: scaled, cropped, rotated, put together, drawn over. */
import type { EngineNode } from '../../node/define-node.ts'
import { cropByBBoxes } from './crop-by-boxes.ts'
import { centerCropImages, imageCropV2, randomCropImages } from './crop-images.ts'
import { imageCropToMask } from './crop-to-mask.ts'
import { drawBBoxes } from './draw-boxes.ts'
import { getImageSize } from './image-size.ts'
import { imageStitch } from './image-stitch.ts'
import { imagePadForOutpaint } from './pad-for-outpaint.ts'
import { resizeAndPadImage, resizeImagesByLongerEdge, resizeImagesByShorterEdge } from './resize-by-edge.ts'
import { resizeImageMask } from './resize-image-mask.ts'
import { imageFlip, imageRotate } from './rotate-and-flip.ts'
import { fluxKontextImageScale, imageScaleToMaxDimension, imageScaleToTotalPixels } from './scale-images.ts'
import { textOverlay } from './text-overlay.ts'
import { imageMergeTileList, splitImageToTileList } from './tiles.ts'

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
