/**
 * What was charged in a period, by day and by what it was for. Days and groups come out of one look at the ledger, and every charge and
 * every refund of the period lies in exactly one day and one group: either of them adds up to what the ledger says.
 */
import type { Micros } from '../../../lib/text/usd.ts'

/** What a charge is for. A job has a pool, a call of a model has the model, a run of an endpoint has that; null as well where it was not noted. */
export interface ChargeLabels {
  readonly pool: string | null
  readonly model: string | null
  /** null: the local kind, or a token that was signed elsewhere. */
  readonly keyId: string | null
  readonly endpoint: string | null
  readonly endpointVersion: number | null
  /** What its caller called it. */
  readonly tag: string | null
}

export const NO_LABELS: ChargeLabels = {
  ...{ pool: null, model: null, keyId: null, endpoint: null, endpointVersion: null, tag: null },
}

export const CHARGE_GROUPS = ['day', 'model', 'pool', 'endpoint', 'key', 'account'] as const
export type ChargeGroup = (typeof CHARGE_GROUPS)[number]

/** `job` and `call`: a run of a workflow, and a call of a model. */
export type ChargedWork = 'job' | 'call'

export interface ChargeSum {
  /** What the work cost, refunds taken off. */
  readonly charged: Micros
  readonly refunded: Micros
  /** How many were charged. */
  readonly count: number
}

export interface GroupSum extends ChargeSum {
  /** The model, pool, endpoint, key or account; null: there is none, or it was not noted. */
  readonly name: string | null
  /** null where a group may hold both. */
  readonly work: ChargedWork | null
}

export interface ChargeQuery {
  /** null: of all accounts. */
  readonly accountId: string | null
  /** Where each day begins, ascending, and at last where the last one ends. */
  readonly edges: readonly Date[]
  readonly by: ChargeGroup
  /** How many groups are told, those that cost most first. */
  readonly limit: number
}

export interface Charges {
  /** One for each day that has charges or refunds, by its place among the edges. */
  readonly days: readonly (ChargeSum & { readonly place: number })[]
  /** None for `day`. */
  readonly groups: readonly GroupSum[]
  /** Held at the moment, whatever the period. */
  readonly held: Micros
}

/** What is in none of the groups that were told; null: nothing is. */
export function toRest(total: ChargeSum, groups: readonly ChargeSum[]): ChargeSum | null {
  const told = sumUp(groups)
  const rest = {
    charged: total.charged - told.charged,
    refunded: total.refunded - told.refunded,
    count: total.count - told.count,
  }
  return rest.charged === 0 && rest.refunded === 0 && rest.count === 0 ? null : rest
}

export function sumUp(sums: readonly ChargeSum[]): ChargeSum {
  return sums.reduce<ChargeSum>(
    (total, { charged, refunded, count }) => ({
      charged: total.charged + charged,
      refunded: total.refunded + refunded,
      count: total.count + count,
    }),
    { charged: 0, refunded: 0, count: 0 },
  )
}
