/** Filters: what changes the pixels of an image and keeps its size. */
import type { EngineNode } from '../../node/define-node.ts'
import { adjustBrightness, adjustContrast, imageAddNoise, normalizeImages } from './adjustments.ts'
import { colorTransfer } from './color-transfer.ts'
import { imageHistogram } from './histogram.ts'
import { ltxvPreprocess } from './ltxv-preprocess.ts'
import { canny, imageBlur, imageSharpen, morphology } from './neighbourhood-filters.ts'
import { imageQuantize } from './quantize.ts'
import { imageRgbToYuv, imageYuvToRgb } from './yuv.ts'

export const filtersNodes: readonly EngineNode[] = [
  imageBlur,
  imageSharpen,
  imageQuantize,
  imageAddNoise,
  adjustBrightness,
  adjustContrast,
  normalizeImages,
  colorTransfer,
  canny,
  morphology,
  imageRgbToYuv,
  imageYuvToRgb,
  imageHistogram,
  ltxvPreprocess,
]
