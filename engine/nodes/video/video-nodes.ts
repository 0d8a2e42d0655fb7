/** Moving pictures with sound: made, cut, taken apart, saved. */
import type { EngineNode } from '../../node/define-node.ts'
import { createVideo, getVideoComponents, loadVideo } from './make-video.ts'
import { videoFrameSample } from './sample-frames.ts'
import { saveVideo, saveWebm } from './save-video.ts'
import { videoSlice, videoTemporalCrop } from './trim-video.ts'

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
