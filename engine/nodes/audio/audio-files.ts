/** Sound read from files, saved and previewed: FLAC by ourselves, MP3 and Opus through ffmpeg, one file per element of the batch. */

import { type Audio, toAudioValue } from '../../media/audio.ts'
import { encodeLossy, type LossyFormat, MP3_QUALITIES, OPUS_QUALITIES, readAudio } from '../../media/audio-files.ts'
import { encodeFlac } from '../../media/encode-flac.ts'
import { type Cost, costOf, defineNode } from '../../node/define-node.ts'
import { defineDynamicNode, dynamicCombo } from '../../node/dynamic-node.ts'
import { combo, string } from '../../node/input-kinds.ts'
import type { CallResult, NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { findInput } from '../files/load-image.ts'
import { hidden, madeFromTexts, nameFiles, outputTarget, previewTarget, type SaveTarget } from '../files/save-image.ts'
import { maybeAudio, uploadedFile } from './edit-audio.ts'

type AudioFormat = LossyFormat | { readonly format: 'flac' }

const CONTENT_TYPES = { flac: 'audio/flac', mp3: 'audio/mpeg', opus: 'audio/ogg' } as const

async function encodeAll(audio: Audio, format: AudioFormat, context: NodeContext) {
  const tags = madeFromTexts(context)
  const encoded: Uint8Array<ArrayBuffer>[] = []
  for (let batch = 0; batch < audio.waveform.shape[0]; batch++) {
    const { allocate, checkpoint } = context
    encoded.push(
      format.format === 'flac'
        ? encodeFlac(audio, { batch, tags, checkpoint })
        : await encodeLossy(audio, format, { batch, tags, allocate, checkpoint }),
    )
  }
  return encoded
}

interface SaveRequest {
  readonly audio: Audio | null
  readonly format: AudioFormat
  readonly classType: string
  toTarget(extension: string, contentType: string): SaveTarget
}

async function saveAudio(request: SaveRequest, context: NodeContext): Promise<CallResult> {
  const { audio, format, classType, toTarget } = request
  if (audio === null) {
    throw new NodeError('ValueError', `${classType}: input audio is None (source video may have no audio track).`)
  }
  const target = toTarget(format.format, CONTENT_TYPES[format.format])
  const files = await nameFiles(await encodeAll(audio, format, context), target, context)
  return { outputs: [toAudioValue(audio)], report: { audio: files } }
}

function saveOutput(
  { audio, prefix, classType }: { readonly audio: Audio | null; readonly prefix: string; readonly classType: string },
  format: AudioFormat,
  context: NodeContext,
): Promise<CallResult> {
  const toTarget = (extension: string, contentType: string) =>
    outputTarget(context, { prefix, ending: '', extension, contentType })
  return saveAudio({ audio, format, classType, toTarget }, context)
}

const common = {
  category: 'audio',
  style: 'schema',
  hidden,
  outputs: [{ type: 'AUDIO', name: 'audio' }],
  isOutputNode: true,
} as const

const filename_prefix = string({ default: 'audio/ComfyUI', multiline: false })
const mp3Quality = combo(MP3_QUALITIES, { default: 'V0' })
const opusQuality = combo(OPUS_QUALITIES, { default: '128k' })

/** FLAC is made here, so a short sound is done at once. */
const flacCost = ({ audio }: { readonly audio: Audio | null }): Cost => costOf(audio?.waveform.data.length ?? 0)

export const saveAudioFlac = defineNode({
  ...common,
  classType: 'SaveAudio',
  displayName: 'Save Audio (FLAC) (DEPRECATED)',
  description: 'Writes sound as FLAC outputs of 16 bit.',
  deprecated: true,
  required: { audio: maybeAudio(), filename_prefix },
  cost: flacCost,
  run: ({ audio, filename_prefix: prefix }, context) =>
    saveOutput({ audio, prefix, classType: 'SaveAudio' }, { format: 'flac' }, context),
})

export const saveAudioMp3 = defineNode({
  ...common,
  classType: 'SaveAudioMP3',
  displayName: 'Save Audio (MP3) (DEPRECATED)',
  description: 'Writes sound as MP3 outputs.',
  deprecated: true,
  required: { audio: maybeAudio(), filename_prefix, quality: mp3Quality },
  cost: 'compute',
  run: ({ audio, filename_prefix: prefix, quality }, context) =>
    saveOutput({ audio, prefix, classType: 'SaveAudioMP3' }, { format: 'mp3', quality }, context),
})

export const saveAudioOpus = defineNode({
  ...common,
  classType: 'SaveAudioOpus',
  displayName: 'Save Audio (Opus) (DEPRECATED)',
  description: 'Writes sound as Opus outputs.',
  deprecated: true,
  required: { audio: maybeAudio(), filename_prefix, quality: opusQuality },
  cost: 'compute',
  run: ({ audio, filename_prefix: prefix, quality }, context) =>
    saveOutput({ audio, prefix, classType: 'SaveAudioOpus' }, { format: 'opus', quality }, context),
})

export const saveAudioAdvanced = defineDynamicNode({
  ...common,
  classType: 'SaveAudioAdvanced',
  displayName: 'Save Audio (Advanced)',
  description: 'Writes sound as outputs in the chosen format.',
  required: {
    audio: maybeAudio(),
    filename_prefix,
    format: dynamicCombo({
      flac: {},
      mp3: { required: { quality: mp3Quality } },
      opus: { required: { quality: opusQuality } },
    }),
  },
  cost: 'compute',
  run({ audio, filename_prefix: prefix, format }, context) {
    const chosen: AudioFormat =
      format.key === 'flac'
        ? { format: 'flac' }
        : format.key === 'mp3'
          ? { format: 'mp3', quality: format.inputs.quality }
          : { format: 'opus', quality: format.inputs.quality }
    return saveOutput({ audio, prefix, classType: 'SaveAudioAdvanced' }, chosen, context)
  },
})

export const previewAudio = defineNode({
  ...common,
  classType: 'PreviewAudio',
  displayName: 'Preview Audio',
  description: 'Lets sound be heard while the workflow runs, without making it an output.',
  required: { audio: maybeAudio() },
  cost: flacCost,
  run({ audio }, context) {
    const toTarget = (extension: string, contentType: string) =>
      previewTarget(context, { ending: '', extension, contentType })
    return saveAudio({ audio, format: { format: 'flac' }, classType: 'PreviewAudio', toTarget }, context)
  },
})

export const loadAudio = defineNode({
  classType: 'LoadAudio',
  displayName: 'Load Audio',
  category: 'audio',
  description: 'Reads the first sound of an uploaded audio or video file.',
  style: 'schema',
  required: { audio: uploadedFile({ audio_upload: true }) },
  outputs: [{ type: 'AUDIO' }],
  selfChecked: ['audio'],
  cost: 'compute',
  changeValue: ({ audio: name }, { files }) => (name === undefined ? null : (files.find(name)?.hash ?? null)),
  async run({ audio: name }, context) {
    const { path } = findInput('audio', name, context)
    return { outputs: [toAudioValue(await readAudio({ path, name }, context))] }
  },
})
