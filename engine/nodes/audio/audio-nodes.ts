import type { EngineNode } from '../../node/define-node.ts'
import { audioConcat, audioMerge, joinAudioChannels, splitAudioChannels } from './combine-audio.ts'
import { audioAdjustVolume, emptyAudio, trimAudioDuration } from './edit-audio.ts'
import { audioEqualizer3Band } from './equalizer.ts'
import { loadAudio } from './load-audio.ts'
import { previewAudio, saveAudioAdvanced, saveAudioFlac, saveAudioMp3, saveAudioOpus } from './save-audio.ts'

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
