/** Sound made, cut, made louder, and filtered. */

import { roundHalfEven } from '../../../lib/python/values.ts'
import type { InputOptions } from '../../graph/node-catalog.ts'
import { type Audio, readAudioValue, toAudioValue } from '../../media/audio.ts'
import { costOf, defineNode, values } from '../../node/define-node.ts'
import { float, type InputKind, int, string } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { inBlocks, mapBlocks } from '../../tensor/channels.ts'
import { applyBiquad, highShelf, lowShelf, peaking } from '../../tensor/sound.ts'
import { type Value, valueTypeName } from '../../values/value.ts'

// How audio nodes declare sound, and files that hold it.

/** Sound, or null from a source without any: a video may have no sound. */
export function maybeAudio(): InputKind<Audio | null> {
  return {
    spec: ['AUDIO', {}],
    read(value: Value) {
      if (value === null) return null
      const audio = readAudioValue(value)
      if (audio !== null) return audio
      throw new NodeError('TypeError', `'${valueTypeName(value)}' object is no audio`)
    },
  }
}

export function audio(): InputKind<Audio> {
  const { spec, read } = maybeAudio()
  return {
    spec,
    read(value, name) {
      const given = read(value, name)
      if (given === null) throw new NodeError('TypeError', "'NoneType' object is not subscriptable")
      return given
    },
  }
}

/** The name of an uploaded file, as schema-style classes declare it. It is judged against the files that the run is given. */
export function uploadedFile(options: InputOptions): InputKind<string> {
  const { read } = string()
  return { spec: ['COMBO', { multiselect: false, options: [], ...options }], read }
}

const LARGEST = 18_446_744_073_709_551_615n
const category = 'audio'

/** `round` as Python has it; what no array can hold stays as large as it is. */
function roundedSamples(seconds: number, sampleRate: number): number {
  const samples = seconds * sampleRate
  if (!Number.isFinite(samples)) throw new NodeError('OverflowError', 'cannot convert float infinity to integer')
  return roundHalfEven(samples)
}

export const emptyAudio = defineNode({
  classType: 'EmptyAudio',
  displayName: 'Empty Audio',
  category,
  description: 'Silence of a given length.',
  style: 'schema',
  required: {
    duration: float({ default: 60, min: 0, max: LARGEST, step: 0.01 }),
    sample_rate: int({ default: 44_100, min: 1, max: 192_000, advanced: true }),
    channels: int({ default: 2, min: 1, max: 2, advanced: true }),
  },
  outputs: [{ type: 'AUDIO' }],
  cost: ({ duration, sample_rate: rate, channels }) => costOf(duration * rate * channels),
  run({ duration, sample_rate: sampleRate, channels }, { allocate, checkpoint }) {
    const waveform = allocate([1, channels, roundedSamples(duration, sampleRate)])
    inBlocks(waveform.data.length, checkpoint, (from, to) => waveform.data.fill(0, from, to))
    return { outputs: [toAudioValue({ waveform, sampleRate })] }
  },
})

/** The samples to keep of each channel, from..to-1. */
function trimRange({ waveform, sampleRate }: Audio, start: number, duration: number): { from: number; to: number } {
  const length = waveform.shape[2]
  const wanted = roundedSamples(start, sampleRate) + (start < 0 ? length : 0)
  const from = Math.max(0, Math.min(wanted, length - 1))
  const to = Math.max(0, Math.min(from + roundedSamples(duration, sampleRate), length))
  if (from < to) return { from, to }
  throw new NodeError(
    'ValueError',
    'TrimAudioDuration: Start time must be less than end time and be within the audio length.',
  )
}

export const trimAudioDuration = defineNode({
  classType: 'TrimAudioDuration',
  displayName: 'Trim Audio Duration',
  category,
  description: 'A part of a sound, given by its start and its length in seconds; a negative start counts from the end.',
  style: 'schema',
  required: {
    audio: audio(),
    start_index: float({ default: 0, min: -LARGEST, max: LARGEST, step: 0.01 }),
    duration: float({ default: 60, min: 0, step: 0.01 }),
  },
  outputs: [{ type: 'AUDIO' }],
  cost: ({ audio: { waveform } }) => costOf(waveform.data.length),
  run({ audio: sound, start_index: start, duration }, { allocate, checkpoint }) {
    const { waveform, sampleRate } = sound
    const [batch, channels, length] = waveform.shape
    if (length === 0) return { outputs: [toAudioValue(sound)] }
    const { from, to } = trimRange(sound, start, duration)
    const kept = allocate([batch, channels, to - from])
    for (let row = 0; row < batch * channels; row++) {
      checkpoint()
      kept.data.set(waveform.data.subarray(row * length + from, row * length + to), row * (to - from))
    }
    return { outputs: [toAudioValue({ waveform: kept, sampleRate })] }
  },
})

export const audioAdjustVolume = defineNode({
  classType: 'AudioAdjustVolume',
  displayName: 'Adjust Audio Volume',
  category,
  description: 'Makes a sound louder or softer by decibels.',
  style: 'schema',
  required: { audio: audio(), volume: int({ default: 1, min: -100, max: 100 }) },
  outputs: [{ type: 'AUDIO' }],
  cost: ({ audio: { waveform } }) => costOf(waveform.data.length),
  run({ audio: sound, volume }, context) {
    if (volume === 0) return { outputs: [toAudioValue(sound)] }
    const gain = 10 ** (volume / 20)
    const waveform = mapBlocks(sound.waveform, context, (from, to, { start, end }) => {
      for (let i = start; i < end; i++) to[i] = from[i] * gain
    })
    return { outputs: [toAudioValue({ waveform, sampleRate: sound.sampleRate })] }
  },
})

const gain = () => float({ default: 0, min: -24, max: 24, step: 0.1 })
// biome-ignore lint/suspicious/noApproximativeNumericConstant: the number that upstream has, not the root of one half
const PLAIN_Q = 0.707

export const audioEqualizer3Band = defineNode({
  classType: 'AudioEqualizer3Band',
  displayName: 'Audio Equalizer (3-Band)',
  category: 'audio',
  description: 'Raises or lowers deep, middle and high tones.',
  style: 'schema',
  experimental: true,
  required: {
    audio: audio(),
    low_gain_dB: gain(),
    low_freq: int({ default: 100, min: 20, max: 500 }),
    mid_gain_dB: gain(),
    mid_freq: int({ default: 1000, min: 200, max: 4000 }),
    mid_q: float({ default: PLAIN_Q, min: 0.1, max: 10, step: 0.1 }),
    high_gain_dB: gain(),
    high_freq: int({ default: 5000, min: 1000, max: 15_000 }),
  },
  outputs: [{ type: 'AUDIO' }],
  cost: ({ audio: { waveform } }) => costOf(waveform.data.length),
  run(inputs, context) {
    const { waveform, sampleRate } = inputs.audio
    const bands = [
      { make: lowShelf, frequency: inputs.low_freq, gainDb: inputs.low_gain_dB, q: PLAIN_Q },
      { make: peaking, frequency: inputs.mid_freq, gainDb: inputs.mid_gain_dB, q: inputs.mid_q },
      { make: highShelf, frequency: inputs.high_freq, gainDb: inputs.high_gain_dB, q: PLAIN_Q },
    ]
    const filtered = bands
      .filter(({ gainDb }) => gainDb !== 0)
      .reduce((sound, { make, ...band }) => applyBiquad(sound, make({ ...band, sampleRate }), context), waveform)
    return values(toAudioValue({ waveform: filtered, sampleRate }))
  },
})
