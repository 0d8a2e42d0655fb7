/**
 * The end of a call: assets are copied, bytes are stored, the price is found, and then one transaction stores the answer and
 * settles the money. What is returned goes to whoever waits.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { toBareType } from '../../../../lib/mime.ts'
import type { StoreBlob } from '../../assets/blob-store.ts'
import type { StorageQuota } from '../../assets/storage-quota.ts'
import { ServiceError } from '../../errors.ts'
import { sourcesOf } from '../pricing/price-rule.ts'
import { type Consumption, capCost, priceOf, type Quote } from '../pricing/pricing.ts'
import type { ProviderRefusal, ProviderResult } from '../provider.ts'
import { RouterError, type RouterRefusal } from '../router-error.ts'
import type { CallBody, CallEnd, CallFate, CallResult, CallStore, StoredRefusal } from './call-store.ts'
import { type HostAssets, mayNameAssets } from './host-assets.ts'
import type { LiveCall } from './live-calls.ts'

export interface ConcludeDeps {
  readonly store: Pick<CallStore, 'finish'>
  readonly hostAssets: HostAssets
  readonly storeBlob: StoreBlob
  readonly quota: Pick<StorageQuota, 'leftFor' | 'noteUnrecorded'>
  readonly clock: Clock
  readonly log: Log
  readonly limits: ResultLimits
}

export interface ResultLimits {
  /** A larger result is cut off and fails. */
  readonly maxResultBytes: number
  /** A larger result is delivered once and cannot be told again. */
  readonly maxReplayBytes: number
  /** How long an answer that names the provider's own addresses may be told again. */
  readonly foreignUrlMs: number
  /** How long the result of a queued call is kept. */
  readonly keepQueuedMs: number
}

/** What is known of a call that was admitted. */
export interface DrivenCall {
  readonly live: LiveCall
  readonly baseUrl: string
  readonly isKeyed: boolean
  readonly isQueued: boolean
  readonly isOwnKey: boolean
  readonly quote: Quote
}

export interface Conclusion {
  readonly end: CallEnd | RouterError
  readonly chargedMicros: number | null
}

export type ConcludeResult = (call: DrivenCall, result: ProviderResult) => Promise<Conclusion>
export type ConcludeRefusal = (call: DrivenCall, refusal: ProviderRefusal) => Promise<Conclusion>

// Small enough to be stored in the call's own record.
const INLINE_BYTES = 65_536
// The caller waits while assets are copied: a host that hangs must not hold the answer for ever.
const HOSTING_MS = 300_000

export function createConcludeResult(deps: ConcludeDeps): ConcludeResult {
  const { limits, clock } = deps
  const finish = createFinish(deps)

  return async function concludeResult(call, result) {
    // Most results need neither, and are then concluded without waiting for another turn of the event loop.
    const hosting = host(deps, call, result)
    const hosted = hosting instanceof Promise ? await hosting : hosting
    const storing = putAway(deps, call, hosted.result)
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
 * A provider's own addresses die, so an answer that names them is told again for a short time only. Of a model that is
 * polled, the answer counts as collected once somebody got it; until then it must stay collectable.
 */
function untilForgotten({ live, isQueued }: DrivenCall, { foreignUrlMs }: ResultLimits, now: Date): Date | null {
  if (isQueued) return null
  if (live.model.returns === 'direct') return new Date(now.getTime() + foreignUrlMs)
  return live.isAwaited ? now : null
}

interface Hosted {
  readonly result: ProviderResult
  readonly hasForeignUrls: boolean
  readonly consumption: Consumption
}

function host(deps: ConcludeDeps, call: DrivenCall, result: ProviderResult): Hosted | Promise<Hosted> {
  const { body, contentType, usage, costMicros, inlineParts = null } = result
  const isJson = Buffer.isBuffer(body) && toBareType(contentType).endsWith('json')
  const output = isJson && needsOutput(call) ? parse(body) : null
  const consumption = { output, usage, costMicros }
  if (!isJson || !mayNameAssets({ body, inlineParts })) return { result, hasForeignUrls: false, consumption }
  return copyAssets(deps, call, { result, body, consumption })
}

async function copyAssets(
  { hostAssets, clock, log }: ConcludeDeps,
  { live, baseUrl }: DrivenCall,
  { result, body, consumption }: { result: ProviderResult; body: Buffer; consumption: Consumption },
): Promise<Hosted> {
  const { accountId, id: callId } = live.ref
  try {
    const deadline = new Date(clock.now().getTime() + HOSTING_MS)
    const { inlineParts = null } = result
    const request = { model: live.model, accountId, callId, baseUrl, body, inlineParts }
    const hosted = await hostAssets(request, { signal: live.signal, deadline })
    return { result: { ...result, body: hosted.body }, hasForeignUrls: hosted.hasForeignUrls, consumption }
  } catch (error) {
    // The generation is there and paid for: its caller gets it with the provider's own addresses.
    log.warn({ err: error, callId, model: live.model.id }, 'assets of a result could not be copied')
    return { result, hasForeignUrls: true, consumption }
  }
}

function needsOutput({ live }: DrivenCall): boolean {
  return sourcesOf(live.model.price).some(({ from }) => from === 'output')
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return null
  }
}

/** `isKept`: the result may be told again to whoever repeats the key. */
type Stored = Omit<CallResult, 'costMicros'> & { readonly isKept: boolean }

/** Small bodies stay in memory, others become a blob; a refusal when they are too large or cannot be stored. */
function putAway(
  deps: ConcludeDeps,
  call: DrivenCall,
  { body, contentType }: ProviderResult,
): Stored | Promise<Stored | RouterError> {
  // Without a key nobody can ask for it again: the bytes in hand are all that is needed.
  if (Buffer.isBuffer(body) && (body.length <= INLINE_BYTES || (!call.isKeyed && !call.isQueued))) {
    return { contentType, body: { kind: 'inline', bytes: body }, sizeBytes: body.length, isKept: true }
  }
  return storeBody(deps, call, { body, contentType })
}

async function storeBody(
  { storeBlob, quota, limits, log }: ConcludeDeps,
  call: DrivenCall,
  { body, contentType }: Pick<ProviderResult, 'body' | 'contentType'>,
): Promise<Stored | RouterError> {
  const { accountId } = call.live.ref
  const left = await quota.leftFor(accountId)
  // An account that may keep no more still gets what is in memory, once.
  if (Buffer.isBuffer(body) && body.length > left && !call.isQueued) {
    return { contentType, body: { kind: 'inline', bytes: body }, sizeBytes: body.length, isKept: false }
  }
  try {
    const source = Buffer.isBuffer(body) ? toChunks(body) : body
    const maxBytes = Math.max(0, Math.min(limits.maxResultBytes, left))
    const { hash, sizeBytes } = await storeBlob(source, { maxBytes })
    // No record counts the bytes of a call without a key, and they are on the disk until they are collected.
    if (!call.isKeyed && !call.isQueued) quota.noteUnrecorded(accountId, sizeBytes)
    return { contentType, body: { kind: 'blob', hash }, sizeBytes, isKept: true }
  } catch (error) {
    const isFull =
      left < limits.maxResultBytes && error instanceof ServiceError && error.refusal === 'payload_too_large'
    if (isFull) {
      const message =
        'the result is larger than what the account may still keep and is lost; the provider made it, so its price is due. Delete assets'
      return new RouterError('too_large', message)
    }
    log.error({ err: error, callId: call.live.ref.id, model: call.live.model.id }, 'a result could not be stored')
    return new RouterError('provider_failed', 'the provider answered, and its answer could not be read or stored')
  }
}

async function* toChunks(body: Buffer): AsyncGenerator<Uint8Array> {
  yield body
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
    }
    const end: CallEnd = { kind: 'refusal', refusal: stored }
    return finish(call, { fate: fateOf(refusal, call.isQueued), end, chargeMicros: chargeFor(call, refusal) })
  }
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
 * real; one that may have left a generation behind must not be repeated: the key is told what the provider answered, or,
 * where it was silent, that nobody knows. A queued call has no caller who could retry.
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

function createFinish({ store, clock, limits, log }: ConcludeDeps) {
  return async function finish(call: DrivenCall, ending: Ending): Promise<Conclusion> {
    const { live, isQueued, isKeyed } = call
    const { end, fate, chargeMicros, replayUntil = null } = ending
    const told = fate === 'interrupt' && isSilence(end) ? null : end
    const at = clock.now()
    const isRemembered = isKeyed || isQueued
    try {
      const outcome = await store.finish(live.ref, {
        fate,
        end: isRemembered && canBeStored(told) ? withOwnBytes(told) : toStoredEnd(told),
        chargeMicros,
        memo: `${live.model.id} ${live.ref.id}`,
        at,
        replayUntil,
        expiresAt: isQueued ? new Date(at.getTime() + limits.keepQueuedMs) : null,
      })
      return { end, chargedMicros: outcome?.chargedMicros ?? null }
    } catch (error) {
      // The generation is there: its caller gets it. The record stays as it was, so nothing is charged twice.
      log.error({ err: error, callId: live.ref.id, model: live.model.id }, 'the end of a call could not be stored')
      return { end, chargedMicros: null }
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

/** A view of a larger buffer would be sent to the writer thread as the whole buffer. */
function withOwnBytes(end: CallEnd): CallEnd {
  if (end.kind === 'refusal' || end.result.body.kind === 'blob') return end
  const { bytes } = end.result.body
  if (bytes.byteLength === bytes.buffer.byteLength) return end
  const body: CallBody = { kind: 'inline', bytes: new Uint8Array(bytes) }
  return { kind: 'result', result: { ...end.result, body } }
}
