/** Sources whose every frame and sample is known: tests recognise them after any way through files. */
import { defineNode, type EngineNode } from '../../node/define-node.ts'
import { float, int } from '../../node/input-kinds.ts'

const facts = { category: 'test', description: 'For tests.', style: 'classic' } as const

/** Frame n is a plain grey of n/count. */
const testFrames = defineNode({
  ...facts,
  classType: 'TestFrames',
  displayName: 'TestFrames',
  required: { count: int(), width: int(), height: int(), channels: int() },
  outputs: [{ type: 'IMAGE' }],
  cost: 'inline',
  run({ count, width, height, channels }, { allocate }) {
    const images = allocate([count, height, width, channels])
    const size = height * width * channels
    for (let n = 0; n < count; n++) images.data.fill(n / count, n * size, (n + 1) * size)
    return { outputs: [images] }
  },
})

/** A tone in every channel, an octave higher in each; elements of the batch are equal. */
const testTone = defineNode({
  ...facts,
  classType: 'TestTone',
  displayName: 'TestTone',
  required: { frequency: float(), seconds: float(), rate: int(), channels: int(), batch: int() },
  outputs: [{ type: 'AUDIO' }],
  cost: 'inline',
  run({ frequency, seconds, rate, channels, batch }, { allocate }) {
    const length = Math.round(seconds * rate)
    const waveform = allocate([batch, channels, length])
    for (let i = 0; i < waveform.data.length; i++) {
      const octave = 2 ** (Math.floor(i / length) % channels)
      waveform.data[i] = 0.5 * Math.sin((2 * Math.PI * frequency * octave * (i % length)) / rate)
    }
    return { outputs: [{ waveform, sample_rate: rate }] }
  },
})

const testNothing = defineNode({
  ...facts,
  classType: 'TestNothing',
  displayName: 'TestNothing',
  outputs: [{ type: '*' }],
  cost: 'inline',
  run: () => ({ outputs: [null] }),
})

export const nodes: readonly EngineNode[] = [testFrames, testTone, testNothing]
