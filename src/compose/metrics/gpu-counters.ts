/**
 * How long servers computed, as counters: by server and pool, node class, weights and account. Names come from graphs and accounts, so
 * each counter has at most so many of them; what comes after these is `other`. The usage pages have all of them.
 */
import type { Registry } from 'prom-client'
import type { JobObserver } from '../../domain/jobs/observer.ts'
import { createSeries } from './call-metrics.ts'

const MAX_NAMES = 200
const OTHER = 'other'

function createNames() {
  const known = new Set<string>()
  return (name: string): string => {
    if (known.size < MAX_NAMES) known.add(name)
    return known.has(name) ? name : OTHER
  }
}

export function createGpuCounters(registry: Registry): JobObserver['computed'] {
  const { counter } = createSeries(registry)
  const seconds = counter('atelier_gpu_seconds_total', 'Seconds that servers computed jobs, by server and pool.', [
    ...(['engine', 'pool'] as const),
  ])
  const ofClasses = counter('atelier_gpu_class_seconds_total', 'The part of them that nodes of a class took.', [
    'class',
  ])
  const ofWeights = counter(
    'atelier_gpu_weights_seconds_total',
    'Seconds that servers computed jobs which load a file of weights.',
    ['weights'],
  )
  const ofAccounts = counter('atelier_gpu_account_seconds_total', 'Seconds that servers computed jobs of an account.', [
    'account',
  ])
  const [engineOf, poolOf, classOf, weightsOf, accountOf] = Array.from({ length: 5 }, createNames)
  return ({ accountId, pool, engineId, gpu }) => {
    seconds.inc({ engine: engineOf(engineId), pool: poolOf(pool) }, gpu.ms / 1000)
    for (const [name, ms] of Object.entries(gpu.classes)) ofClasses.inc({ class: classOf(name) }, ms / 1000)
    for (const name of gpu.weights) ofWeights.inc({ weights: weightsOf(name) }, gpu.ms / 1000)
    ofAccounts.inc({ account: accountOf(accountId) }, gpu.ms / 1000)
  }
}
