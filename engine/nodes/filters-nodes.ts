/** Every class of this group, in the order of the catalogue. */
import type { EngineNode } from '../define-node.ts'
import { imageAddNoise } from './filters/add-noise.ts'
import { adjustBrightness, adjustContrast, normalizeImages } from './filters/adjustments.ts'
import { imageBlur, imageSharpen } from './filters/blur-and-sharpen.ts'
import { canny } from './filters/canny.ts'
import { colorTransfer } from './filters/color-transfer.ts'
import { imageHistogram } from './filters/histogram.ts'
import { ltxvPreprocess } from './filters/ltxv-preprocess.ts'
import { morphology } from './filters/morphology.ts'
import { imageQuantize } from './filters/quantize.ts'
import { imageRgbToYuv, imageYuvToRgb } from './filters/yuv.ts'

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
