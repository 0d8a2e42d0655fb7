import { toAudioValue } from '../../media/audio.ts'
import { countFrames, readFrames, readSound } from '../../media/read-video.ts'
import { defineNode, values } from '../../node/define-node.ts'
import { video } from './video-kinds.ts'

export const getVideoComponents = defineNode({
  classType: 'GetVideoComponents',
  displayName: 'Get Video Components',
  category: 'video',
  description: 'The frames, the sound and the rate of a video.',
  style: 'schema',
  required: { video },
  outputs: [
    { type: 'IMAGE', name: 'images' },
    { type: 'AUDIO', name: 'audio' },
    { type: 'FLOAT', name: 'fps' },
    { type: 'INT', name: 'bit_depth' },
    { type: 'COMBO', name: 'color_space' },
  ],
  cost: ({ video: { kind } }) => (kind === 'frames' ? 'inline' : 'compute'),
  async run({ video: given }, context) {
    if (given.kind === 'frames') {
      const { images, audio, fps, bitDepth } = given
      return values(images, audio === null ? null : toAudioValue(audio), fps, bitDepth, 'sRGB')
    }
    const facts = await countFrames(given, context)
    const { fps, bitDepth } = facts.stream
    const images = await readFrames({ video: given, facts, positions: null }, context)
    const audio = await readSound(given, facts, context)
    return values(images, audio === null ? null : toAudioValue(audio), fps, bitDepth, facts.colorSpace)
  },
})
