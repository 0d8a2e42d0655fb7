import type { EngineNode } from '../../node/define-node.ts'
import { imageCompare } from './image-compare.ts'
import { loadImageOutput, webcamCapture } from './load-image-file.ts'
import { maskPreview } from './mask-preview.ts'
import { painter } from './painter.ts'
import { saveAnimatedPng, saveAnimatedWebp } from './save-animation.ts'
import { saveImageAdvanced } from './save-image-advanced.ts'
import { saveImageWebsocket } from './save-image-websocket.ts'
import { saveSvg } from './save-svg.ts'

/** Images read and saved in other ways than plain PNG, and shown while a workflow runs. */
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
