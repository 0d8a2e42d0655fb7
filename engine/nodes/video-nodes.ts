import type { EngineNode } from '../define-node.ts'
import { getVideoComponents } from './video/get-video-components.ts'
import { createVideo, loadVideo } from './video/make-video.ts'
import { videoFrameSample } from './video/sample-frames.ts'
import { saveVideo, saveWebm } from './video/save-video.ts'
import { videoSlice, videoTemporalCrop } from './video/trim-video.ts'

/** Moving pictures with sound: made, cut, taken apart, saved. */
export const videoNodes: readonly EngineNode[] = [
  loadVideo,
  createVideo,
  getVideoComponents,
  saveVideo,
  saveWebm,
  videoSlice,
  videoFrameSample,
  videoTemporalCrop,
]
