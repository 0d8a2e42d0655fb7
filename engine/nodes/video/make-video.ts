/** Videos put together from files and images, and taken apart. Nothing is decoded or encoded until somebody needs it. */

import { toAudioValue } from '../../media/audio.ts'
import { WHOLE } from '../../media/audio-files.ts'
import { countFrames, readFrames, readSound } from '../../media/read-video.ts'
import { readVideoValue, toVideoValue, type Video } from '../../media/video.ts'
import { defineNode, values } from '../../node/define-node.ts'
import type { Given, GroupKind } from '../../node/dynamic-node.ts'
import { float, type InputKind, image, int } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { type Value, valueTypeName } from '../../values/value.ts'
import { maybeAudio, uploadedFile } from '../audio/edit-audio.ts'
import { findInput } from '../files/load-image.ts'

// How video nodes declare what they take.

export const video: InputKind<Video> = {
  spec: ['VIDEO', {}],
  read(value: Value) {
    const read = readVideoValue(value)
    if (read !== null) return read
    throw new NodeError('AttributeError', `'${valueTypeName(value)}' object has no attribute 'get_components'`)
  },
}

/** A group that may be left out. */
export function optionalGroup<T>(kind: GroupKind<T>): GroupKind<T | undefined> {
  return {
    spec: kind.spec,
    readGroup: (given: Given, path: string) => (Object.hasOwn(given, path) ? kind.readGroup(given, path) : undefined),
  }
}

export const loadVideo = defineNode({
  classType: 'LoadVideo',
  displayName: 'Load Video',
  category: 'video',
  description: 'An uploaded video, opened when a node needs its frames or its sound.',
  style: 'schema',
  required: { file: uploadedFile({ video_upload: true }) },
  outputs: [{ type: 'VIDEO' }],
  selfChecked: ['file'],
  cost: 'inline',
  // The handle holds the file's path, so a cached result is valid only while the content is at that path.
  changeValue({ file: name }, { files }) {
    const file = name === undefined ? null : files.find(name)
    return file === null ? null : `${file.hash} ${file.path}`
  },
  run({ file: name }, context) {
    const { path } = findInput('video', name, context)
    return values(toVideoValue({ kind: 'file', file: { path, name }, window: WHOLE }, context.allocate))
  },
})

export const createVideo = defineNode({
  classType: 'CreateVideo',
  displayName: 'Create Video',
  category: 'video',
  description: 'Images as the frames of a video, with sound if there is any.',
  style: 'schema',
  required: { images: image({}), fps: float({ default: 30, min: 1, max: 120, step: 1 }) },
  optional: { audio: maybeAudio(), bit_depth: int({ default: 8, min: 8, max: 10, step: 2, display: 'number' }) },
  outputs: [{ type: 'VIDEO' }],
  cost: 'inline',
  run({ images, fps, audio = null, bit_depth: bitDepth = 8 }, { allocate }) {
    if (bitDepth !== 8 && bitDepth !== 10) {
      throw new NodeError('ValueError', `a video has 8 or 10 bit, not ${bitDepth}`)
    }
    if (!(fps > 0 && fps < Number.POSITIVE_INFINITY))
      throw new NodeError('ValueError', `a video cannot have ${fps} frames per second`)
    return values(toVideoValue({ kind: 'frames', images, audio, fps, bitDepth }, allocate))
  },
})

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
