import type { EngineNode } from '../define-node.ts'
import { imageCompare } from './files/image-compare.ts'
import { loadImageOutput, webcamCapture } from './files/load-image-file.ts'
import { maskPreview } from './files/mask-preview.ts'
import { painter } from './files/painter.ts'
import { saveAnimatedPng, saveAnimatedWebp } from './files/save-animation.ts'
import { saveImageAdvanced } from './files/save-image-advanced.ts'
import { saveImageWebsocket } from './files/save-image-websocket.ts'
import { saveSvg } from './files/save-svg.ts'

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
