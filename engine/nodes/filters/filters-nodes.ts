/** Every class of this group, in the order of the catalogue. */
import type { EngineNode } from '../../node/define-node.ts'
import { imageAddNoise } from './add-noise.ts'
import { adjustBrightness, adjustContrast, normalizeImages } from './adjustments.ts'
import { imageBlur, imageSharpen } from './blur-and-sharpen.ts'
import { canny } from './canny.ts'
import { colorTransfer } from './color-transfer.ts'
import { imageHistogram } from './histogram.ts'
import { ltxvPreprocess } from './ltxv-preprocess.ts'
import { morphology } from './morphology.ts'
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
