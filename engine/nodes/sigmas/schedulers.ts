/** Schedules of noise levels that need no model. */

import type { InputOptions } from '../../graph/node-catalog.ts'
import { defineNode, type EngineNode, type InputsOf, type Kinds } from '../../node/define-node.ts'
import { unnamed } from '../../node/dynamic-node.ts'
import { float, type InputKind, int } from '../../node/input-kinds.ts'
import type { NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { Tensor } from '../../tensor/tensor.ts'
import { valueTypeName } from '../../values/value.ts'

// The formulas behind the scheduler nodes. PyTorch computes them in single precision, so every intermediate result is
// rounded where it rounds: a power of seven would otherwise show the difference.

const { fround } = Math

/** `torch.linspace`: counted from the nearer end, so that both ends are exact. */
export function linspace(from: number, to: number, count: number): Float32Array {
  const values = new Float32Array(count)
  if (count === 1) {
    values[0] = from
    return values
  }
  const [start, end] = [fround(from), fround(to)]
  const step = fround(fround(end - start) / (count - 1))
  const half = Math.floor(count / 2)
  for (let i = 0; i < count; i++) {
    values[i] = i < half ? start + fround(step * i) : end - fround(step * (count - i - 1))
  }
  return values
}

/** `math.log`. */
function log(value: number): number {
  if (value > 0) return Math.log(value)
  throw new NodeError('ValueError', 'math domain error')
}

const withZero = (levels: Float32Array) => [...levels, 0]

interface Range {
  readonly steps: number
  readonly max: number
  readonly min: number
}

function karras({ steps, max, min }: Range, rho: number): number[] {
  if (rho === 0) throw new NodeError('ZeroDivisionError', 'float division by zero')
  const [low, high] = [min ** (1 / rho), max ** (1 / rho)]
  const difference = fround(low - high)
  const levels = linspace(0, 1, steps).map((t) => fround(fround(high) + fround(t * difference)) ** rho)
  return withZero(levels)
}

function exponential({ steps, max, min }: Range): number[] {
  return withZero(linspace(log(max), log(min), steps).map(Math.exp))
}

function polyexponential({ steps, max, min }: Range, rho: number): number[] {
  const [low, high] = [log(min), log(max)]
  const levels = linspace(1, 0, steps).map((t) => {
    const ramp = fround(t ** rho)
    return Math.exp(fround(fround(ramp * fround(high - low)) + fround(low)))
  })
  return withZero(levels)
}

interface VpOptions {
  readonly steps: number
  readonly betaD: number
  readonly betaMin: number
  readonly epsilon: number
}

function variancePreserving({ steps, betaD, betaMin, epsilon }: VpOptions): number[] {
  const levels = linspace(1, epsilon, steps).map((t) => {
    const exponent = fround(fround(fround(fround(betaD) * fround(t * t)) / 2) + fround(fround(betaMin) * t))
    return Math.sqrt(fround(Math.expm1(exponent)))
  })
  return withZero(levels)
}

// Keeps the logarithm below away from 0.
const LAPLACE_MARGIN = 1e-5

/** The only schedule that does not end in 0. */
function laplace({ steps, max, min }: Range, { mu, beta }: { mu: number; beta: number }): number[] {
  const levels = linspace(0, 1, steps).map((x) => {
    const distance = fround(0.5 - x)
    const spread = fround(Math.log(fround(fround(1 - 2 * Math.abs(distance)) + LAPLACE_MARGIN)))
    const level = fround(Math.exp(fround(mu - fround(fround(beta * Math.sign(distance)) * spread))))
    return Math.min(Math.max(level, min), max)
  })
  return [...levels]
}

// SIGMAS: the noise levels of a sampler's steps, as a plain vector.

export function sigmas(options: InputOptions): InputKind<Tensor> {
  return {
    spec: ['SIGMAS', options],
    read(value, name) {
      if (!(value instanceof Tensor)) {
        throw new NodeError('AttributeError', `'${valueTypeName(value)}' object has no attribute 'shape'`)
      }
      if (value.shape.length === 1) return value
      throw new NodeError('RuntimeError', `${name}: expected 1 dimension, got a tensor of [${value.shape.join(', ')}]`)
    },
  }
}

export function toSigmas(levels: ArrayLike<number>, { allocate }: NodeContext): Tensor {
  const result = allocate([levels.length])
  result.data.set(levels)
  return result
}

const facts = {
  category: 'model/sampling/schedulers',
  style: 'schema',
  outputs: [{ type: 'SIGMAS' }],
  cost: 'inline',
} as const

const steps = int({ default: 20, min: 1, max: 10000 })

function level(fallback: number, { max, step }: { max: number; step: number } = { max: 5000, step: 0.01 }) {
  return float({ advanced: true, default: fallback, min: 0, max, step, round: false })
}

const sigmaRange = { steps, sigma_max: level(14.614642), sigma_min: level(0.0291675) }
const rho = (fallback: number) => level(fallback, { max: 100, step: 0.01 })
const shape = (fallback: number, min: number) =>
  float({ advanced: true, default: fallback, min, max: 10, step: 0.1, round: false })

interface SchedulerSpec<R extends Kinds> {
  readonly classType: string
  readonly description: string
  readonly required: R
  schedule(inputs: InputsOf<R, Record<never, never>>): number[]
}

function defineScheduler<const R extends Kinds>(spec: SchedulerSpec<R>): EngineNode {
  const { classType, description, required } = spec
  return unnamed(
    defineNode({
      ...facts,
      classType,
      displayName: classType,
      description,
      required,
      run: (inputs, context) => ({ outputs: [toSigmas(spec.schedule(inputs), context)] }),
    }),
  )
}

export const karrasScheduler = defineScheduler({
  classType: 'KarrasScheduler',
  description: 'Noise levels whose steps shrink towards the end, after Karras and others (2022).',
  required: { ...sigmaRange, rho: rho(7) },
  schedule: ({ steps: count, sigma_max: max, sigma_min: min, rho: power }) => karras({ steps: count, max, min }, power),
})

export const exponentialScheduler = defineScheduler({
  classType: 'ExponentialScheduler',
  description: 'Noise levels in even steps of their logarithm.',
  required: sigmaRange,
  schedule: ({ steps: count, sigma_max: max, sigma_min: min }) => exponential({ steps: count, max, min }),
})

export const polyexponentialScheduler = defineScheduler({
  classType: 'PolyexponentialScheduler',
  description: 'Noise levels whose logarithm follows a power.',
  required: { ...sigmaRange, rho: rho(1) },
  schedule: ({ steps: count, sigma_max: max, sigma_min: min, rho: power }) =>
    polyexponential({ steps: count, max, min }, power),
})

export const vpScheduler = defineScheduler({
  classType: 'VPScheduler',
  description: 'Noise levels of a variance-preserving process.',
  required: {
    steps,
    beta_d: level(19.9),
    beta_min: level(0.1),
    eps_s: level(0.001, { max: 1, step: 0.0001 }),
  },
  schedule: ({ steps: count, beta_d: betaD, beta_min: betaMin, eps_s: epsilon }) =>
    variancePreserving({ steps: count, betaD, betaMin, epsilon }),
})

export const laplaceScheduler = defineScheduler({
  classType: 'LaplaceScheduler',
  description: 'Noise levels that gather around the middle, after a Laplace distribution.',
  required: { ...sigmaRange, mu: shape(0, -10), beta: shape(0.5, 0) },
  schedule: ({ steps: count, sigma_max: max, sigma_min: min, mu, beta }) =>
    laplace({ steps: count, max, min }, { mu, beta }),
})
