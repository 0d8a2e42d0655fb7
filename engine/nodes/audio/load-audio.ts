import { toAudioValue } from '../../media/audio.ts'
import { readAudio } from '../../media/read-audio.ts'
import { defineNode } from '../../node/define-node.ts'
import { NodeError } from '../../node/node-error.ts'
import { uploadedFile } from './audio-kinds.ts'

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
    const file = context.files.find(name)
    if (file === null) throw new NodeError('FileNotFoundError', `Invalid audio file: ${name}`)
    return { outputs: [toAudioValue(await readAudio({ path: file.path, name }, context))] }
  },
})
