/** What running costs: per second of execution, by pool. Partner models have prices of their own. */
import { MAX_MICROS, type Micros } from '../../../lib/text/usd.ts'
import { invalidField } from '../errors.ts'

export interface PoolPrice {
  readonly perSecondMicros: Micros
  /** The least that a job costs which succeeds. */
  readonly minimumMicros: Micros
  /** What is set aside when a job is accepted: the price of a usual run. */
  readonly holdMicros: Micros
  /** The price of an endpoint: what is set aside is the most that it costs, and a run that fails costs nothing. */
  readonly isAgreed?: boolean
}

interface Prices {
  /** null: running costs nothing there. */
  priceOf(pool: string): PoolPrice | null
}

const SECOND_MS = 1000

/**
 * What so much time costs: the exact product, rounded up once to the next micro-dollar. Whole seconds and the rest are
 * multiplied apart, so that every step is a whole number that JavaScript holds exactly; beyond the bound it is the bound.
 */
export function priceOfTime(perSecondMicros: Micros, durationMs: number): Micros {
  const wholeMs = Math.max(0, Math.ceil(durationMs))
  const restMs = wholeMs % SECOND_MS
  const forSeconds = ((wholeMs - restMs) / SECOND_MS) * perSecondMicros
  return Math.min(MAX_MICROS, forSeconds + Math.ceil((restMs * perSecondMicros) / SECOND_MS))
}

export const FREE: Prices = { priceOf: () => null }

/** Stands for every pool that has no price of its own. */
const ANY_POOL = '*'
const USUAL_SECONDS = 60
// A thousand dollars a second.
const MAX_PER_SECOND = 1_000_000_000
const MAX_POOLS = 10_000

/** `{ "pools": { "<pool or *>": { "perSecondMicros": 500, "minimumMicros": 1000, "holdMicros": 30000 } } }`. Throws invalid_field. */
export function readPrices(value: unknown): Prices {
  const { pools, ...others } = readObject(value, 'prices')
  refuseOthers('prices', others, ['pools'])
  const named = Object.entries(readObject(pools ?? {}, 'pools'))
  if (named.length > MAX_POOLS) throw invalidField('pools', `must hold at most ${MAX_POOLS} pools`)
  const byPool = new Map(named.map(([pool, price]) => [pool, readPoolPrice(pool, price)]))
  return {
    priceOf(pool) {
      const price = byPool.get(pool) ?? byPool.get(ANY_POOL)
      return price === undefined || isFree(price) ? null : price
    },
  }
}

function isFree({ perSecondMicros, minimumMicros, holdMicros }: PoolPrice): boolean {
  return perSecondMicros === 0 && minimumMicros === 0 && holdMicros === 0
}

function readPoolPrice(pool: string, value: unknown): PoolPrice {
  const { perSecondMicros, minimumMicros, holdMicros, ...others } = readObject(value, pool)
  refuseOthers(pool, others, ['perSecondMicros', 'minimumMicros', 'holdMicros'])
  const perSecond = readAmount(`${pool}.perSecondMicros`, perSecondMicros, MAX_PER_SECOND)
  const minimum = readAmount(`${pool}.minimumMicros`, minimumMicros ?? 0, MAX_MICROS)
  const usual = Math.max(minimum, perSecond * USUAL_SECONDS)
  return {
    perSecondMicros: perSecond,
    minimumMicros: minimum,
    holdMicros: readAmount(`${pool}.holdMicros`, holdMicros ?? usual, MAX_MICROS),
  }
}

function readAmount(field: string, value: unknown, max: Micros): Micros {
  if (Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= max) return value as number
  throw invalidField(field, `must be a whole number of micro-dollars from 0 to ${max}`)
}

function readObject(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw invalidField(what, 'must be an object')
}

function refuseOthers(what: string, others: Readonly<Record<string, unknown>>, known: readonly string[]): void {
  const [name] = Object.keys(others)
  if (name !== undefined)
    throw invalidField(what, `has the unknown key ${JSON.stringify(name)}; use ${known.join(', ')}`)
}
