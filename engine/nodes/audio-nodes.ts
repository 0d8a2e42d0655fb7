import type { EngineNode } from '../define-node.ts'
import { audioConcat, audioMerge, joinAudioChannels, splitAudioChannels } from './audio/combine-audio.ts'
import { audioAdjustVolume, emptyAudio, trimAudioDuration } from './audio/edit-audio.ts'
import { audioEqualizer3Band } from './audio/equalizer.ts'
import { loadAudio } from './audio/load-audio.ts'
import { previewAudio, saveAudioAdvanced, saveAudioFlac, saveAudioMp3, saveAudioOpus } from './audio/save-audio.ts'

/** Sound: read, made, changed, saved. */
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
