/** Images read and saved in other ways than plain PNG, and shown while a workflow runs. */
import type { EngineNode } from '../../node/define-node.ts'
import { loadImageOutput, webcamCapture } from './load-image.ts'
import { painter } from './painter.ts'
import { imageCompare, maskPreview } from './preview-nodes.ts'
import { saveAnimatedPng, saveAnimatedWebp } from './save-animation.ts'
import { saveImageWebsocket } from './save-image.ts'
import { saveImageAdvanced } from './save-image-advanced.ts'
import { saveSvg } from './save-svg.ts'

export const filesNodes: readonly EngineNode[] = [
  loadImageOutput,
  webcamCapture,
  painter,
  saveImageAdvanced,
  saveAnimatedPng,
  saveAnimatedWebp,
  saveSvg,
  saveImageWebsocket,
  maskPreview,
  imageCompare,
]
