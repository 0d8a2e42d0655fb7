/** Schedules of noise levels that need no model. */
import { defineNode, type EngineNode } from '../../node/define-node.ts'
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

interface PowerSchedule {
  readonly classType: string
  readonly description: string
  /** The power that counts unless the graph says otherwise. */
  readonly rho: number
  readonly schedule: typeof karras
}

/** A schedule between two levels whose curve follows a power, `rho`. */
function definePowerScheduler({ classType, description, rho, schedule }: PowerSchedule): EngineNode {
  return unnamed(
    defineNode({
      ...facts,
      classType,
      displayName: classType,
      description,
      required: { ...sigmaRange, rho: level(rho, { max: 100, step: 0.01 }) },
      run: ({ steps: count, sigma_max: max, sigma_min: min, rho: power }, context) => ({
        outputs: [toSigmas(schedule({ steps: count, max, min }, power), context)],
      }),
    }),
  )
}

export const karrasScheduler = definePowerScheduler({
  classType: 'KarrasScheduler',
  description: 'Noise levels whose steps shrink towards the end, after Karras and others (2022).',
  rho: 7,
  schedule: karras,
})

export const exponentialScheduler = unnamed(
  defineNode({
    ...facts,
    classType: 'ExponentialScheduler',
    displayName: 'ExponentialScheduler',
    description: 'Noise levels in even steps of their logarithm.',
    required: sigmaRange,
    run: ({ steps: count, sigma_max: max, sigma_min: min }, context) => ({
      outputs: [toSigmas(exponential({ steps: count, max, min }), context)],
    }),
  }),
)

export const polyexponentialScheduler = definePowerScheduler({
  classType: 'PolyexponentialScheduler',
  description: 'Noise levels whose logarithm follows a power.',
  rho: 1,
  schedule: polyexponential,
})

export const vpScheduler = unnamed(
  defineNode({
    ...facts,
    classType: 'VPScheduler',
    displayName: 'VPScheduler',
    description: 'Noise levels of a variance-preserving process.',
    required: {
      steps,
      beta_d: level(19.9),
      beta_min: level(0.1),
      eps_s: level(0.001, { max: 1, step: 0.0001 }),
    },
    run: ({ steps: count, beta_d: betaD, beta_min: betaMin, eps_s: epsilon }, context) => ({
      outputs: [toSigmas(variancePreserving({ steps: count, betaD, betaMin, epsilon }), context)],
    }),
  }),
)

const shape = (fallback: number, min: number) =>
  float({ advanced: true, default: fallback, min, max: 10, step: 0.1, round: false })

export const laplaceScheduler = unnamed(
  defineNode({
    ...facts,
    classType: 'LaplaceScheduler',
    displayName: 'LaplaceScheduler',
    description: 'Noise levels that gather around the middle, after a Laplace distribution.',
    required: { ...sigmaRange, mu: shape(0, -10), beta: shape(0.5, 0) },
    run: ({ steps: count, sigma_max: max, sigma_min: min, mu, beta }, context) => ({
      outputs: [toSigmas(laplace({ steps: count, max, min }, { mu, beta }), context)],
    }),
  }),
)
