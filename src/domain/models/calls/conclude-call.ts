/**
 * The end of a call: assets are copied, bytes are stored, the price is found, and then one transaction stores the answer and
 * settles the money. What is returned goes to whoever waits.
 */
import type { Log } from '../../../../lib/log.ts'
import { createBackoff } from '../../../../lib/waiting/backoff.ts'
import { sleep } from '../../../../lib/waiting/sleep.ts'
import { capCost, priceOf } from '../pricing/pricing.ts'
import type { ProviderRefusal, ProviderResult } from '../provider.ts'
import { RouterError, type RouterRefusal } from '../router-error.ts'
import { type CallEnd, type CallFate, type CallStore, INLINE_BYTES, type StoredRefusal } from './call-store.ts'
import { hostResult, type KeepResultDeps, storeResult } from './keep-result.ts'
import type { DrivenCall } from './live-calls.ts'

export interface ConcludeDeps extends KeepResultDeps {
  readonly store: Pick<CallStore, 'finish'>
  readonly limits: ResultLimits
  /** Aborted when the process stops and calls under way must be left to the next one. */
  readonly stopping: AbortSignal
}

interface ResultLimits {
  /** A larger result is cut off and fails. */
  readonly maxResultBytes: number
  /** A larger result is delivered once and cannot be replayed. */
  readonly maxReplayBytes: number
  /** How long an answer that names the provider's own addresses may be replayed. */
  readonly foreignUrlMs: number
  /** How long the result of a queued call is kept. */
  readonly keepQueuedMs: number
}

export interface Conclusion {
  readonly end: CallEnd | RouterError
  readonly chargedMicros: number | null
  /** `lost`: another node has the call, and this end was not stored. `failed`: the store could not be reached. */
  readonly stored: 'stored' | 'lost' | 'failed'
}

type ConcludeResult = (call: DrivenCall, result: ProviderResult) => Promise<Conclusion>
type ConcludeRefusal = (call: DrivenCall, refusal: ProviderRefusal) => Promise<Conclusion>

export function createConcludeResult(deps: ConcludeDeps): ConcludeResult {
  const { limits, clock } = deps
  const finish = createFinish(deps)

  return async function concludeResult(call, result) {
    // Most results need neither, and are then concluded without waiting for another turn of the event loop.
    const hosting = hostResult(deps, call, result)
    const hosted = hosting instanceof Promise ? await hosting : hosting
    const storing = storeResult(deps, call, hosted.result)
    const stored = storing instanceof Promise ? await storing : storing
    const chargeMicros = call.isOwnKey ? null : priceOf(call.live.model.price, call.quote, hosted.consumption)
    warnOfLoss(deps.log, call, { chargeMicros, costMicros: hosted.consumption.costMicros })
    if (stored instanceof RouterError) {
      // The provider did its work: the price is due even where the account has no room for the result.
      return finish(call, {
        fate: 'spend',
        end: stored,
        chargeMicros: stored.refusal === 'too_large' ? chargeMicros : 0,
      })
    }
    const { isKept, ...made } = stored
    const end: CallEnd = { kind: 'result', result: { ...made, costMicros: chargeMicros } }
    const isTooLargeToKeep = !isKept || (stored.sizeBytes > limits.maxReplayBytes && !call.isQueued)
    const fate: CallFate = isTooLargeToKeep ? 'spend' : 'keep'
    const replayUntil = hosted.hasForeignUrls ? untilForgotten(call, limits, clock.now()) : null
    return finish(call, { fate, end, chargeMicros, replayUntil })
  }
}

/** Nobody is charged more than was set aside. Where a provider's own figure is larger, the rule's hold is too small. */
function warnOfLoss(
  log: Log,
  { live }: DrivenCall,
  { chargeMicros, costMicros }: { readonly chargeMicros: number | null; readonly costMicros: number | null },
): void {
  if (live.model.price.kind !== 'reported' || chargeMicros === null || costMicros === null) return
  if (costMicros <= chargeMicros) return
  const about = { callId: live.ref.id, model: live.model.id, chargeMicros, costMicros }
  log.warn(about, 'a call cost more than the hold_usd of its price, which is all that was charged')
}

/**
 * A provider's own addresses expire, so an answer that names them is replayed for a short time only. Of a model that is
 * polled, the answer counts as collected once somebody got it; until then it must stay collectable.
 */
function untilForgotten({ live, isQueued }: DrivenCall, { foreignUrlMs }: ResultLimits, now: Date): Date | null {
  if (isQueued) return null
  if (live.model.returns === 'direct') return new Date(now.getTime() + foreignUrlMs)
  return live.isAwaited ? now : null
}

export function createConcludeRefusal(deps: ConcludeDeps): ConcludeRefusal {
  const finish = createFinish(deps)
  return function concludeRefusal(call, refusal) {
    const isCanceled = call.live.isAskedToStop && refusal.reason === 'failed'
    const stored: StoredRefusal = {
      refusal: isCanceled ? 'cancelled' : toRouterRefusal(refusal),
      message: refusal.reason === 'timeout' ? `${refusal.message}; nothing is charged for it` : refusal.message,
      upstreamStatus: refusal.upstreamStatus,
      failures: refusal.reason === 'invalid' ? refusal.failures : null,
      ...(call.isQueued ? {} : toRetryAfter(refusal)),
    }
    const end: CallEnd = { kind: 'refusal', refusal: stored }
    return finish(call, { fate: fateOf(refusal, call.isQueued), end, chargeMicros: chargeFor(call, refusal) })
  }
}

function toRetryAfter(refusal: ProviderRefusal): Pick<StoredRefusal, 'retryAfterSeconds'> {
  if (refusal.reason !== 'unavailable' || refusal.retryAfterSeconds === null) return {}
  return { retryAfterSeconds: refusal.retryAfterSeconds }
}

function toRouterRefusal(refusal: ProviderRefusal): RouterRefusal {
  if (refusal.reason === 'invalid') return refusal.failures === null ? 'provider_refused_input' : 'invalid_fields'
  return REASONS[refusal.reason]
}

const REASONS: Readonly<Record<Exclude<ProviderRefusal['reason'], 'invalid'>, RouterRefusal>> = {
  policy: 'policy',
  failed: 'provider_failed',
  timeout: 'provider_timeout',
  unavailable: 'unavailable',
}

/**
 * What a provider actually answered is remembered. A failure without any generation frees the key, so that a retry runs for
 * real; one that may have left a generation behind must not be repeated: whoever sends the key again gets what the provider
 * answered, or, where it was silent, that the outcome is unknown. A queued call has no caller who could retry.
 */
function fateOf({ reason, generation, upstreamStatus }: ProviderRefusal, isQueued: boolean): CallFate {
  // An input that could not even be sent, such as a picture that cannot be fetched, was refused by us and not by a provider.
  const isAnswer = reason === 'policy' || (reason === 'invalid' && (upstreamStatus !== null || generation === 'ended'))
  if (isAnswer || isQueued) return 'keep'
  if (generation === 'possible') return 'interrupt'
  return generation === 'ended' ? 'keep' : 'forget'
}

function chargeFor({ live, isOwnKey, quote }: DrivenCall, refusal: ProviderRefusal): number | null {
  if (refusal.reason !== 'policy' || isOwnKey) return null
  const { chargesOnPolicyRejection, price } = live.model
  if (chargesOnPolicyRejection !== 'yes') return capCost(price, quote, refusal.costMicros)
  return priceOf(price, quote, { output: null, usage: null, costMicros: refusal.costMicros })
}

interface Ending {
  readonly fate: CallFate
  readonly end: CallEnd | RouterError
  readonly chargeMicros: number | null
  readonly replayUntil?: Date | null
}

function createFinish({ store, clock, limits, log, stopping }: ConcludeDeps) {
  return async function finish(call: DrivenCall, ending: Ending): Promise<Conclusion> {
    const { live, isQueued, isKeyed } = call
    const { end, fate, chargeMicros, replayUntil = null } = ending
    const kept = fate === 'interrupt' && isSilence(end) ? null : end
    const at = clock.now()
    const isRemembered = isKeyed || isQueued
    const about = { callId: live.ref.id, model: live.model.id }
    const write = () =>
      store.finish(live.ref, {
        fate,
        end: isRemembered && canBeStored(kept) ? kept : toStoredEnd(kept),
        chargeMicros,
        memo: `${live.model.id} ${live.ref.id}`,
        at,
        replayUntil,
        expiresAt: isQueued ? new Date(at.getTime() + limits.keepQueuedMs) : null,
      })
    live.isConcluding = true
    try {
      const outcome = await write().catch((error: unknown) => {
        log.warn({ err: error, ...about }, 'the end of a call could not be stored; it is tried again')
        // The generation is there: its caller gets it. The record is as it was, so nothing is charged twice.
        live.end(end)
        return writePersistently(write, stopping)
      })
      if (outcome === null) log.warn(about, 'the end of a call was not stored: another node has the call')
      return { end, chargedMicros: outcome?.chargedMicros ?? null, stored: outcome === null ? 'lost' : 'stored' }
    } catch (error) {
      log.error({ err: error, ...about }, 'the end of a call could not be stored')
      return { end, chargedMicros: null, stored: 'failed' }
    }
  }
}

/** Whether the provider of a call with an unknown outcome gave no answer at all. */
function isSilence(end: CallEnd | RouterError): boolean {
  const refusal = end instanceof RouterError ? end : end.kind === 'refusal' ? end.refusal : null
  return refusal === null || refusal.upstreamStatus === null
}

/** False for a refusal of ours, and for bytes that are too many for the record. */
function canBeStored(end: CallEnd | RouterError | null): end is CallEnd {
  if (end === null || end instanceof RouterError) return false
  return end.kind !== 'result' || end.result.body.kind !== 'inline' || end.result.sizeBytes <= INLINE_BYTES
}

function toStoredEnd(end: CallEnd | RouterError | null): CallEnd | null {
  if (!(end instanceof RouterError)) return null
  const { refusal, message, upstreamStatus, failures } = end
  return { kind: 'refusal', refusal: { refusal, message, upstreamStatus, failures } }
}

/** Writes that must not be lost to a store that cannot be reached for a moment. */
const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 5000
// With growing pauses about a minute: a database that restarts is back by then.
const MAX_TRIES = 18

/**
 * Repeats a write that failed until it succeeds; throws its last error when the process stops or it failed too often. The write
 * must be harmless to repeat: nobody knows whether one that failed was carried out.
 */
export async function writePersistently<Answer>(write: () => Promise<Answer>, stopping: AbortSignal): Promise<Answer> {
  const backoff = createBackoff({ firstMs: FIRST_PAUSE_MS, maxMs: MAX_PAUSE_MS })
  for (let tries = 1; ; tries++) {
    try {
      return await write()
    } catch (error) {
      if (tries >= MAX_TRIES || stopping.aborted) throw error
      await sleep(backoff.nextMs(), stopping)
    }
  }
}
