/** Two sounds made one, and one made two. Different rates meet at the higher one. */

import { type Audio, channelOf, toAudioValue } from '../../media/audio.ts'
import { costOf, defineNode, values } from '../../node/define-node.ts'
import { combo } from '../../node/input-kinds.ts'
import type { NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { sizeMismatch } from '../../tensor/batch-axis.ts'
import { BLOCK_ELEMENTS, inBlocks } from '../../tensor/channels.ts'
import { resample } from '../../tensor/sound.ts'
import type { Tensor } from '../../tensor/tensor.ts'
import { audio, maybeAudio } from './edit-audio.ts'

const category = 'audio'
const outputs = [{ type: 'AUDIO' }] as const

interface Pair {
  readonly first: Tensor
  readonly second: Tensor
  readonly sampleRate: number
}

function atOneRate(first: Audio, second: Audio, context: NodeContext): Pair {
  const sampleRate = Math.max(first.sampleRate, second.sampleRate)
  const fit = ({ waveform, sampleRate: from }: Audio) => resample(waveform, { from, to: sampleRate }, context)
  return { first: fit(first), second: fit(second), sampleRate }
}

const pairCost = ({ audio1, audio2 }: { readonly audio1: Audio; readonly audio2: Audio }) =>
  audio1.sampleRate === audio2.sampleRate
    ? costOf(audio1.waveform.data.length + audio2.waveform.data.length)
    : ('compute' as const)

/** One channel of every element of a batch. */
function oneChannel({ waveform, sampleRate }: Audio, channel: number, { allocate, checkpoint }: NodeContext): Audio {
  const [batch, , length] = waveform.shape
  const picked = allocate([batch, 1, length])
  for (let index = 0; index < batch; index++) {
    checkpoint()
    picked.data.set(channelOf(waveform, index, channel), index * length)
  }
  return { waveform: picked, sampleRate }
}

export const splitAudioChannels = defineNode({
  classType: 'SplitAudioChannels',
  displayName: 'Split Audio Channels',
  category,
  description: 'The left and the right channel of a stereo sound, each by itself.',
  style: 'schema',
  required: { audio: audio() },
  outputs: [
    { type: 'AUDIO', name: 'left' },
    { type: 'AUDIO', name: 'right' },
  ],
  cost: ({ audio: { waveform } }) => costOf(waveform.data.length),
  run({ audio: sound }, context) {
    const channels = sound.waveform.shape[1]
    if (channels !== 2) {
      const message = `AudioSplit: Input audio must be stereo (2 channels), got ${channels} channel(s).`
      throw new NodeError('ValueError', message)
    }
    return values(toAudioValue(oneChannel(sound, 0, context)), toAudioValue(oneChannel(sound, 1, context)))
  },
})

function sameBatch(first: Tensor, second: Tensor): number {
  if (first.shape[0] === second.shape[0]) return first.shape[0]
  const [expected, got] = [first.shape[0], second.shape[0]]
  const message = `Sizes of tensors must match. Expected size ${expected} but got size ${got} for dimension 0.`
  throw new NodeError('RuntimeError', message)
}

export const joinAudioChannels = defineNode({
  classType: 'JoinAudioChannels',
  displayName: 'Join Audio Channels',
  category,
  description: 'Two mono sounds as left and right channel of one; the shorter one decides the length.',
  style: 'schema',
  required: { audio_left: maybeAudio(), audio_right: maybeAudio() },
  outputs: [{ type: 'AUDIO', name: 'audio' }],
  cost: ({ audio_left: left, audio_right: right }) =>
    left !== null && right !== null ? pairCost({ audio1: left, audio2: right }) : 'inline',
  run({ audio_left: left, audio_right: right }, context) {
    if (left === null || right === null) {
      const only = left ?? right
      return values(only === null ? null : toAudioValue(only))
    }
    if (left.waveform.shape[1] !== 1 || right.waveform.shape[1] !== 1) {
      throw new NodeError('ValueError', 'AudioJoin: Both input audios must be mono.')
    }
    const { first, second, sampleRate } = atOneRate(left, right, context)
    const batch = sameBatch(first, second)
    const length = Math.min(first.shape[2], second.shape[2])
    const joined = context.allocate([batch, 2, length])
    for (let index = 0; index < batch; index++) {
      context.checkpoint()
      joined.data.set(channelOf(first, index, 0).subarray(0, length), index * 2 * length)
      joined.data.set(channelOf(second, index, 0).subarray(0, length), (index * 2 + 1) * length)
    }
    return values(toAudioValue({ waveform: joined, sampleRate }))
  },
})

function concatenate(first: Tensor, second: Tensor, { allocate, checkpoint }: NodeContext): Tensor {
  const batch = sameBatch(first, second)
  // One channel counts as two equal ones.
  const [channels, others] = [first, second].map(({ shape }) => Math.max(2, shape[1]))
  if (channels !== others) {
    const message = `Sizes of tensors must match. Expected size ${channels} but got size ${others} for dimension 1.`
    throw new NodeError('RuntimeError', message)
  }
  const length = first.shape[2] + second.shape[2]
  const joined = allocate([batch, channels, length])
  for (let row = 0; row < batch * channels; row++) {
    checkpoint()
    const [index, channel] = [Math.floor(row / channels), row % channels]
    const pick = (part: Tensor) => channelOf(part, index, part.shape[1] === 1 ? 0 : channel)
    joined.data.set(pick(first), row * length)
    joined.data.set(pick(second), row * length + first.shape[2])
  }
  return joined
}

export const audioConcat = defineNode({
  classType: 'AudioConcat',
  displayName: 'Concatenate Audio',
  category,
  description: 'Two sounds one after the other; mono becomes stereo.',
  style: 'schema',
  required: { audio1: audio(), audio2: audio(), direction: combo(['after', 'before'], { default: 'after' }) },
  outputs,
  cost: pairCost,
  run({ audio1, audio2, direction }, context) {
    const { first, second, sampleRate } = atOneRate(audio1, audio2, context)
    const [head, tail] = direction === 'after' ? [first, second] : [second, first]
    return values(toAudioValue({ waveform: concatenate(head, tail, context), sampleRate }))
  },
})

const MIX = {
  add: (a: number, b: number) => a + b,
  mean: (a: number, b: number) => (a + b) / 2,
  subtract: (a: number, b: number) => a - b,
  multiply: (a: number, b: number) => a * b,
} as const

/** Two axes meet when they are equal or one of them is 1. */
function commonSize(a: number, b: number, axis: number): number {
  if (a === b || b === 1) return a
  if (a === 1) return b
  throw sizeMismatch(a, b, axis)
}

/** Louder than the loudest possible is brought back as a whole. */
function normalise({ data }: Tensor, checkpoint: () => void): void {
  let peak = 0
  inBlocks(data.length, checkpoint, (from, to) => {
    for (let i = from; i < to; i++) peak = Math.max(peak, Math.abs(data[i]))
  })
  if (!(peak > 1)) return
  inBlocks(data.length, checkpoint, (from, to) => {
    for (let i = from; i < to; i++) data[i] /= peak
  })
}

function merge(first: Tensor, second: Tensor, mix: (a: number, b: number) => number, context: NodeContext): Tensor {
  const batch = commonSize(first.shape[0], second.shape[0], 0)
  const channels = commonSize(first.shape[1], second.shape[1], 1)
  const length = first.shape[2]
  const merged = context.allocate([batch, channels, length])
  for (let row = 0; row < batch * channels; row++) {
    const [index, channel] = [Math.floor(row / channels), row % channels]
    const pick = (part: Tensor) =>
      channelOf(part, Math.min(index, part.shape[0] - 1), Math.min(channel, part.shape[1] - 1))
    const [a, b] = [pick(first), pick(second)]
    const out = merged.data.subarray(row * length, (row + 1) * length)
    // The second is cut to the first, and silent where it is shorter.
    for (let i = 0; i < length; i++) {
      if (i % BLOCK_ELEMENTS === 0) context.checkpoint()
      out[i] = mix(a[i], i < b.length ? b[i] : 0)
    }
  }
  normalise(merged, context.checkpoint)
  return merged
}

export const audioMerge = defineNode({
  classType: 'AudioMerge',
  displayName: 'Merge Audio',
  category,
  description: 'Two sounds at the same time; the first one decides the length.',
  style: 'schema',
  required: {
    audio1: audio(),
    audio2: audio(),
    merge_method: combo(['add', 'mean', 'subtract', 'multiply']),
  },
  outputs,
  cost: pairCost,
  run({ audio1, audio2, merge_method: method }, context) {
    const { first, second, sampleRate } = atOneRate(audio1, audio2, context)
    return values(toAudioValue({ waveform: merge(first, second, MIX[method], context), sampleRate }))
  },
})
