/** Schedules of noise levels that need no model. */
import { defineNode, type EngineNode, type InputsOf, type Kinds } from '../../node/define-node.ts'
import { unnamed } from '../../node/dynamic-node.ts'
import { float, int } from '../../node/input-kinds.ts'
import { exponential, karras, laplace, polyexponential, variancePreserving } from './schedules.ts'
import { toSigmas } from './sigmas-kind.ts'

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
