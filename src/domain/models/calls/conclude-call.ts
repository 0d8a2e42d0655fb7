/**
 * The end of a call: assets are copied, bytes are stored, the price is found, and then one transaction stores the answer and
 * settles the money. What is returned goes to whoever waits.
 */

import type { Clock } from '../../../../lib/clock.ts'
import { toBareType } from '../../../../lib/files/mime.ts'
import type { Log } from '../../../../lib/log.ts'
import { createBackoff, sleep } from '../../../../lib/waiting/sleep.ts'
import type { StoreBlob } from '../../assets/blob-store.ts'
import type { StorageQuota } from '../../assets/storage-quota.ts'
import { isStoreAway, outlastOutage, ServiceError } from '../../errors.ts'
import { type FetchedMedia, translateAnswer } from '../alternates/translate-answer.ts'
import { type Model, sourcesOf } from '../catalog/model.ts'
import { type Consumption, capCost, priceOf } from '../pricing/pricing.ts'
import type { ProviderRefusal, ProviderResult } from '../provider.ts'
import { RouterError, type RouterRefusal } from '../router-error.ts'
import {
  type CallEnd,
  type CallFate,
  type CallResult,
  type CallStore,
  INLINE_BYTES,
  type StoredRefusal,
  toChunks,
} from './call-store.ts'
import { type DrivenCall, servingModelOf } from './live-calls.ts'

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
  const concludeRefusal = createConcludeRefusal(deps)

  return async function concludeResult(call, result) {
    if (call.serving?.alternate != null) {
      const translated = await translateResult(deps, call, result)
      if (translated === null) return concludeRefusal(call, UNREADABLE)
      return conclude(call, { ...translated, consumption: toConsumption(call, result) })
    }
    return conclude(call, result)
  }

  async function conclude(call: DrivenCall, result: TranslatedResult): Promise<Conclusion> {
    // Most results need neither, and are then concluded without waiting for another turn of the event loop.
    const hosting = hostResult(deps, call, result)
    const hosted = hosting instanceof Promise ? await hosting : hosting
    const storing = storeResult(deps, call, hosted.result)
    const stored = storing instanceof Promise ? await storing : storing
    const chargeMicros = call.isOwnKey ? null : chargeOf(call, hosted)
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
    const end: CallEnd = {
      kind: 'result',
      result: { ...made, costMicros: chargeMicros, served: call.serving?.served ?? null },
    }
    const isTooLargeToKeep = !isKept || (stored.sizeBytes > limits.maxReplayBytes && !call.isQueued)
    const fate: CallFate = isTooLargeToKeep ? 'spend' : 'keep'
    const replayUntil = hosted.hasForeignUrls ? untilForgotten(call, limits, clock.now()) : null
    return finish(call, { fate, end, chargeMicros, replayUntil })
  }
}

/** Of an answer that broke off, a price that only the provider knows is not guessed at: what it did not name is not charged. */
function chargeOf(call: DrivenCall, { result, consumption }: CopiedResult): number | null {
  const { price } = servingModelOf(call)
  if (result.isPartial === true && price.kind !== 'sum') return capCost(price, call.quote, consumption.costMicros)
  return priceOf(price, call.quote, consumption)
}

/** Nobody is charged more than was set aside. Where a provider's own figure is larger, the rule's hold is too small. */
function warnOfLoss(
  log: Log,
  call: DrivenCall,
  { chargeMicros, costMicros }: { readonly chargeMicros: number | null; readonly costMicros: number | null },
): void {
  const { id, price } = servingModelOf(call)
  if (price.kind !== 'reported' || chargeMicros === null || costMicros === null) return
  if (costMicros <= chargeMicros) return
  const about = { callId: call.live.ref.id, model: id, chargeMicros, costMicros }
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
  if (refusal.reason === 'refused') return refusal.refusal
  return REASONS[refusal.reason]
}

const REASONS: Readonly<Record<Exclude<ProviderRefusal['reason'], 'invalid' | 'refused'>, RouterRefusal>> = {
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

function chargeFor(call: DrivenCall, refusal: ProviderRefusal): number | null {
  const { isOwnKey, quote } = call
  if (refusal.reason !== 'policy' || isOwnKey) return null
  const { chargesOnPolicyRejection, price } = servingModelOf(call)
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

// What of a result is kept before its call ends: the assets that it names are copied, and its bytes are stored where they are
// too many for the record of the call. Most results need neither and are returned at once.

/** null: it cannot be had. */
export type FetchResultMedia = (
  request: Pick<HostingRequest, 'model' | 'accountId' | 'isOwnKey'> & { readonly url: string },
  options: { readonly signal: AbortSignal },
) => Promise<FetchedMedia | null>

/** What was used is told by the provider's own answer, before it is translated. */
interface TranslatedResult extends ProviderResult {
  readonly consumption?: Consumption
}

const UNREADABLE: ProviderRefusal = {
  reason: 'failed',
  message: 'the provider answered, and its answer could not be read; nothing is charged for it',
  upstreamStatus: null,
  generation: 'ended',
}

/** The result in the form of the model that was asked for; null: it cannot be read. */
async function translateResult(
  { fetchMedia, log }: KeepResultDeps,
  call: DrivenCall,
  result: ProviderResult,
): Promise<ProviderResult | null> {
  const { live, serving } = call
  const about = { callId: live.ref.id, model: servingModelOf(call).id }
  try {
    if (serving?.alternate == null || !Buffer.isBuffer(result.body)) throw new Error('The answer is no document.')
    const { accountId } = live.ref
    const { model, alternate } = serving
    const fetchOne = (url: string) =>
      fetchMedia({ model, accountId, isOwnKey: call.isOwnKey, url }, { signal: live.signal })
    const body = await translateAnswer(result.body, alternate, fetchOne)
    return { ...result, body, contentType: 'application/json' }
  } catch (error) {
    log.error({ err: error, ...about }, 'an answer could not be put into the form of the model that was asked for')
    if (!Buffer.isBuffer(result.body)) await result.body[Symbol.asyncIterator]().return?.()
    return null
  }
}

function toConsumption(call: DrivenCall, { body, usage, costMicros }: ProviderResult): Consumption {
  return { output: Buffer.isBuffer(body) && needsOutput(call) ? parse(body) : null, usage, costMicros }
}

export interface HostingRequest {
  readonly model: Model
  readonly accountId: string
  /** It was made with the account's own key. */
  readonly isOwnKey: boolean
  readonly callId: string
  /** Scheme, authority and mount prefix under which the caller reached us: what our addresses begin with. */
  readonly baseUrl: string
  /** A JSON document. */
  readonly body: Buffer
  /** The path of the parts with inline media that the caller wants as addresses; null or absent: they stay inline. */
  readonly inlineParts?: string | null
}

interface HostedResult {
  readonly body: Buffer
  /** Whether an address of the provider is left in one of the model's asset leaves, hosted or not. */
  readonly hasForeignUrls: boolean
}

/**
 * Copies the assets that a result names to our storage and puts our addresses in place of the provider's. What cannot be copied
 * keeps the provider's address, and the call succeeds all the same.
 */
export type HostAssets = (
  request: HostingRequest,
  options: { readonly signal: AbortSignal; readonly deadline: Date },
) => Promise<HostedResult>

interface KeepResultDeps {
  readonly hostAssets: HostAssets
  /** For answers of providers that give addresses where the model that was asked for gives the media inline. */
  readonly fetchMedia: FetchResultMedia
  readonly storeBlob: StoreBlob
  readonly quota: Pick<StorageQuota, 'leftFor' | 'noteUnrecorded'>
  readonly clock: Clock
  readonly log: Log
  readonly limits: {
    /** A larger result is cut off and fails. */
    readonly maxResultBytes: number
  }
}

// The caller waits while assets are copied: a host that hangs must not hold the answer for ever.
const HOSTING_MS = 300_000

interface CopiedResult {
  readonly result: ProviderResult
  readonly hasForeignUrls: boolean
  readonly consumption: Consumption
}

/** With its assets copied, where it may name any. At once where it names none, which is most. */
function hostResult(
  deps: KeepResultDeps,
  call: DrivenCall,
  result: TranslatedResult,
): CopiedResult | Promise<CopiedResult> {
  const { body, contentType, usage, costMicros, inlineParts = null } = result
  const isJson = Buffer.isBuffer(body) && toBareType(contentType).endsWith('json')
  const output = isJson && needsOutput(call) ? parse(body) : null
  const consumption = result.consumption ?? { output, usage, costMicros }
  if (!isJson || !mayNameAssets({ body, inlineParts })) return { result, hasForeignUrls: false, consumption }
  return copyAssets(deps, call, { result, body, consumption })
}

/** A result without any address, which is most of those with inline bytes, need not even be read. */
export function mayNameAssets({ body, inlineParts = null }: Pick<HostingRequest, 'body' | 'inlineParts'>): boolean {
  return inlineParts !== null || body.includes('://')
}

async function copyAssets(
  { hostAssets, clock, log }: KeepResultDeps,
  call: DrivenCall,
  { result, body, consumption }: { result: ProviderResult; body: Buffer; consumption: Consumption },
): Promise<CopiedResult> {
  const { live, baseUrl } = call
  const { accountId, id: callId } = live.ref
  try {
    const deadline = new Date(clock.now().getTime() + HOSTING_MS)
    const { inlineParts = null } = result
    const request = { model: toHosted(call), accountId, isOwnKey: call.isOwnKey, callId, baseUrl, body, inlineParts }
    const hosted = await hostAssets(request, { signal: live.signal, deadline })
    return { result: { ...result, body: hosted.body }, hasForeignUrls: hosted.hasForeignUrls, consumption }
  } catch (error) {
    // The generation is there and paid for: its caller gets it with the provider's own addresses.
    log.warn({ err: error, callId, model: live.model.id }, 'assets of a result could not be copied')
    return { result, hasForeignUrls: true, consumption }
  }
}

/** The assets lie where the model that was asked for has them, and are downloaded as those of the one that was called. */
function toHosted(call: DrivenCall): Model {
  const { live } = call
  const { provider, adapter } = servingModelOf(call)
  if (call.serving === undefined || call.serving.alternate === null) return servingModelOf(call)
  const withKey = adapter['download_with_key'] === true
  return { ...live.model, provider, adapter: { ...live.model.adapter, download_with_key: withKey } }
}

function needsOutput(call: DrivenCall): boolean {
  return sourcesOf(servingModelOf(call).price).some(({ from }) => from === 'output')
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return null
  }
}

/** `isKept`: the result can be replayed to whoever repeats the key. */
type StoredResult = Omit<CallResult, 'costMicros'> & { readonly isKept: boolean }

// About what a caller who waits for an answer bears on top.
const OUTAGE_MS = 20_000

/** Small bodies stay in memory, others become a blob; a refusal when they are too large or cannot be stored. */
export function storeResult(
  deps: KeepResultDeps,
  call: DrivenCall,
  { body, contentType, isTooLongToKeep = false }: ProviderResult,
): StoredResult | Promise<StoredResult | RouterError> {
  if (isTooLongToKeep && Buffer.isBuffer(body)) return toInline(body, contentType, { isKept: false })
  // Without a key nobody can ask for the result again: the bytes in memory are all that is needed.
  if (Buffer.isBuffer(body) && (body.length <= INLINE_BYTES || (!call.isKeyed && !call.isQueued))) {
    return toInline(body, contentType, { isKept: true })
  }
  return storeBody(deps, call, { body, contentType })
}

function toInline(bytes: Buffer, contentType: string, { isKept }: Pick<StoredResult, 'isKept'>): StoredResult {
  return { contentType, body: { kind: 'inline', bytes }, sizeBytes: bytes.length, isKept }
}

async function storeBody(
  { storeBlob, quota, limits, log }: KeepResultDeps,
  call: DrivenCall,
  { body, contentType }: Pick<ProviderResult, 'body' | 'contentType'>,
): Promise<StoredResult | RouterError> {
  const { accountId } = call.live.ref
  const left = await quota.leftFor(accountId)
  // An account that may keep no more still gets what is in memory, once.
  if (Buffer.isBuffer(body) && body.length > left && !call.isQueued) {
    return toInline(body, contentType, { isKept: false })
  }
  const maxBytes = Math.max(0, Math.min(limits.maxResultBytes, left))
  // What is in memory can be sent again: somebody pays for it, so storage that is away for a moment must not lose it.
  const store = () => storeBlob(Buffer.isBuffer(body) ? toChunks(body) : body, { maxBytes })
  try {
    const storing = Buffer.isBuffer(body) ? outlastOutage(store, AbortSignal.timeout(OUTAGE_MS)) : store()
    const { hash, sizeBytes } = await storing
    // No record counts the bytes of a call without a key, and they are on the disk until they are collected.
    if (!call.isKeyed && !call.isQueued) quota.noteUnrecorded(accountId, sizeBytes)
    return { contentType, body: { kind: 'blob', hash }, sizeBytes, isKept: true }
  } catch (error) {
    if (Buffer.isBuffer(body) && isStoreAway(error) && !call.isQueued) {
      return toInline(body, contentType, { isKept: false })
    }
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
