/** Noise levels split, reversed and refined. */
import { readPythonFloat, roundHalfEven } from '../../../lib/python/values.ts'
import { costOf, defineNode } from '../../node/define-node.ts'
import { unnamed } from '../../node/dynamic-node.ts'
import { combo, float, int, string } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { inPython } from '../../python/python-value.ts'
import { costOfTexts, refuseLongText } from '../../python/text-limit.ts'
import { sliceBatch } from '../../tensor/batch-axis.ts'
import { sliceOf } from '../../tensor/channels.ts'
import type { Tensor } from '../../tensor/tensor.ts'
import { linspace, sigmas, toSigmas } from './schedulers.ts'

const facts = {
  category: 'model/sampling/sigmas',
  style: 'schema',
  cost: ({ sigmas: levels }: { readonly sigmas: Tensor }) => costOf(levels.data.length),
} as const
const outputs = [{ type: 'SIGMAS' }] as const
const halves = [
  { type: 'SIGMAS', name: 'high_sigmas' },
  { type: 'SIGMAS', name: 'low_sigmas' },
] as const

/** `levels[from:to]`. */
function slice(levels: Tensor, from: number, to: number): Tensor {
  const part = sliceOf(from, to, levels.shape[0])
  return sliceBatch(levels, part.from, part.count)
}

export const splitSigmas = unnamed(
  defineNode({
    ...facts,
    classType: 'SplitSigmas',
    displayName: 'SplitSigmas',
    description: 'Divides noise levels after a number of steps; both parts share the level between them.',
    required: { sigmas: sigmas({}), step: int({ default: 0, min: 0, max: 10000 }) },
    outputs: halves,
    run: ({ sigmas: levels, step }) => ({
      outputs: [slice(levels, 0, step + 1), slice(levels, step, levels.shape[0])],
    }),
  }),
)

export const splitSigmasDenoise = unnamed(
  defineNode({
    ...facts,
    classType: 'SplitSigmasDenoise',
    displayName: 'SplitSigmasDenoise',
    description: 'Divides noise levels so that the second part holds a share of the steps.',
    required: { sigmas: sigmas({}), denoise: float({ default: 1, min: 0, max: 1, step: 0.01 }) },
    outputs: halves,
    run({ sigmas: levels, denoise }) {
      const count = levels.shape[0]
      const kept = roundHalfEven(Math.max(count - 1, 0) * denoise)
      // Without steps for the second part the first is empty: Python reads `[:-0]` as `[:0]`.
      const high = kept === 0 ? slice(levels, 0, 0) : slice(levels, 0, -kept)
      return { outputs: [high, slice(levels, -(kept + 1), count)] }
    },
  }),
)

// A schedule that starts at 0 would divide by it.
const LEAST_SIGMA = 0.0001

export const flipSigmas = unnamed(
  defineNode({
    ...facts,
    classType: 'FlipSigmas',
    displayName: 'FlipSigmas',
    description: 'Turns noise levels round.',
    required: { sigmas: sigmas({}) },
    outputs,
    run({ sigmas: levels }, context) {
      if (levels.data.length === 0) return { outputs: [levels] }
      const flipped = levels.data.toReversed()
      if (flipped[0] === 0) flipped[0] = LEAST_SIGMA
      return { outputs: [toSigmas(flipped, context)] }
    },
  }),
)

export const setFirstSigma = unnamed(
  defineNode({
    ...facts,
    classType: 'SetFirstSigma',
    displayName: 'SetFirstSigma',
    description: 'Replaces the first noise level.',
    required: {
      sigmas: sigmas({}),
      sigma: float({ default: 136, min: 0, max: 20000, step: 0.001, round: false }),
    },
    outputs,
    run({ sigmas: levels, sigma }, context) {
      if (levels.data.length === 0) {
        throw new NodeError('IndexError', 'index 0 is out of bounds for dimension 0 with size 0')
      }
      const changed = toSigmas(levels.data, context)
      changed.data[0] = sigma
      return { outputs: [changed] }
    },
  }),
)

const SPACINGS = {
  linear: (x: number) => x,
  cosine: (x: number) => Math.sin((x * Math.PI) / 2),
  sine: (x: number) => 1 - Math.cos((x * Math.PI) / 2),
} as const

const limit = (fallback: number, min: number) => float({ default: fallback, min, max: 20000, step: 0.01, round: false })

export const extendIntermediateSigmas = unnamed(
  defineNode({
    ...facts,
    classType: 'ExtendIntermediateSigmas',
    displayName: 'ExtendIntermediateSigmas',
    description: 'Puts further noise levels between those within a range.',
    required: {
      sigmas: sigmas({}),
      steps: int({ default: 2, min: 1, max: 100 }),
      start_at_sigma: limit(-1, -1),
      end_at_sigma: limit(12, 0),
      spacing: combo(['linear', 'cosine', 'sine']),
    },
    outputs,
    cost: ({ sigmas: levels, steps }) => costOf(levels.data.length * steps),
    run({ sigmas: { data }, steps, start_at_sigma: start, end_at_sigma: end, spacing }, context) {
      // A negative start means no upper limit.
      const [most, least] = [start < 0 ? Number.POSITIVE_INFINITY : Math.fround(start), Math.fround(end)]
      const between = linspace(0, 1, steps + 1)
        .subarray(1, -1)
        .map(SPACINGS[spacing])
      const extended: number[] = []
      data.forEach((level, index) => {
        extended.push(level)
        if (index === data.length - 1 || level < least || level > most) return
        const step = data[index + 1] - level
        for (const share of between) extended.push(share * step + level)
      })
      return { outputs: [toSigmas(extended, context)] }
    },
  }),
)

// Upstream's pattern is [-+]?(?:\d*\.*\d+). This one finds the same texts, but looks at a run of dots only once.
const NUMBERS = /[-+]?(?:\p{Nd}+(?:\.+\p{Nd}+)?|(?<!\.)\.+\p{Nd}+)/gu

export const manualSigmas = unnamed(
  defineNode({
    ...facts,
    classType: 'ManualSigmas',
    displayName: 'ManualSigmas',
    description: 'Noise levels written as numbers in a text.',
    experimental: true,
    required: { sigmas: string({ default: '1, 0.5', multiline: false }) },
    outputs,
    cost: costOfTexts,
    run({ sigmas: text }, context) {
      refuseLongText(text.length)
      const levels = Array.from(text.matchAll(NUMBERS), ([number]) => inPython(() => readPythonFloat(number)))
      return { outputs: [toSigmas(levels, context)] }
    },
  }),
)
