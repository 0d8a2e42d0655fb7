/**
 * Which providers may serve a call, and in which order. A plan is made when the call is admitted and stored before anything is sent;
 * a replay or a recovery reads it and never makes it anew. At most one of its attempts can have left anything at a provider: the
 * next one begins only when the one before certainly left nothing, and only through a write that names the attempt it leaves.
 *
 * The states of an attempt: behind the one that the row names it is planned; before it, `end` says how it ended; the one that the
 * row names is being sent once the journal has its entry, and has its handle once the row has one.
 */
import type { Micros } from '../../../../lib/text/usd.ts'

/** `native`: the body as it came. `translated`: from the model's own form. `own_form`: it already is in the provider's. */
type AttemptForm = 'native' | 'translated' | 'own_form'

/** Why an attempt left nothing at its provider. */
export type AttemptEnd =
  /** It was not tried: too many calls of the provider had failed a moment before. */
  | 'paused'
  /** Not one byte was sent. */
  | 'not_sent'
  /** The provider said that it takes no such call from us, or none now. */
  | 'not_accepted'

export interface PlannedAttempt {
  readonly provider: string
  /** Of the model that is called there, with its own price and rules. */
  readonly modelId: string
  readonly form: AttemptForm
  /** Whose key pays the provider. */
  readonly keyOwner: 'service' | 'account'
  /** What it may cost at most; null: nothing is held for it. */
  readonly holdMicros: Micros | null
  /** What the translation left out, each with its reason. */
  readonly dropped: readonly string[]
  /** Of an attempt that the call has left behind. */
  readonly end?: AttemptEnd
}

export const ROUTES = ['listed', 'cheapest', 'fastest', 'weighted'] as const
export type Route = (typeof ROUTES)[number]

export interface CallPlan {
  /** The provider that the request named, or the model's own. */
  readonly asked: string
  /** How the order was found. */
  readonly route: Route
  readonly attempts: readonly PlannedAttempt[]
}

/** More than so many providers are never tried for one call. */
export const MAX_ATTEMPTS = 3

/** Who served a result, where that is to be told. */
export interface Served {
  /** Another provider than the one that was asked for; null: that one. */
  readonly fallbackProvider: string | null
  readonly dropped: readonly string[]
}

/** null: there is nothing to tell. */
export function toServed({ asked, attempts }: CallPlan, index: number): Served | null {
  const attempt = attempts[index]
  if (attempt === undefined) return null
  const fallbackProvider = attempt.provider === asked ? null : attempt.provider
  return fallbackProvider === null && attempt.dropped.length === 0
    ? null
    : { fallbackProvider, dropped: attempt.dropped }
}

/** The plan once the call has left an attempt behind. */
export function withEnd(plan: CallPlan, index: number, end: AttemptEnd): CallPlan {
  return { ...plan, attempts: plan.attempts.map((attempt, at) => (at === index ? { ...attempt, end } : attempt)) }
}
