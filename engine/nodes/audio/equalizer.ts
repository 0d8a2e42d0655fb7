import { toAudioValue } from '../../media/audio.ts'
import { defineNode, values } from '../../node/define-node.ts'
import { costOf } from '../../node/image-cost.ts'
import { float, int } from '../../node/input-kinds.ts'
import { applyBiquad, highShelf, lowShelf, peaking } from '../../tensor/sound/biquad.ts'
import { audio } from './audio-kinds.ts'

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
