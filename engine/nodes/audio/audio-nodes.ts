/** Sound: read, made, changed, saved. */
import type { EngineNode } from '../../node/define-node.ts'
import {
  loadAudio,
  previewAudio,
  saveAudioAdvanced,
  saveAudioFlac,
  saveAudioMp3,
  saveAudioOpus,
} from './audio-files.ts'
import { audioConcat, audioMerge, joinAudioChannels, splitAudioChannels } from './combine-audio.ts'
import { audioAdjustVolume, audioEqualizer3Band, emptyAudio, trimAudioDuration } from './edit-audio.ts'

export const audioNodes: readonly EngineNode[] = [
  loadAudio,
  saveAudioFlac,
  saveAudioMp3,
  saveAudioOpus,
  saveAudioAdvanced,
  previewAudio,
  emptyAudio,
  trimAudioDuration,
  splitAudioChannels,
  joinAudioChannels,
  audioConcat,
  audioMerge,
  audioAdjustVolume,
  audioEqualizer3Band,
]
