/**
 * What of a result is kept before its call ends: the assets that it names are copied, and its bytes are stored where they are
 * too many for the record of the call. Most results need neither and are returned at once.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { toBareType } from '../../../../lib/files/mime.ts'
import type { Log } from '../../../../lib/log.ts'
import type { StoreBlob } from '../../assets/blob-store.ts'
import type { StorageQuota } from '../../assets/storage-quota.ts'
import { isStoreAway, ServiceError } from '../../errors.ts'
import { outlastOutage } from '../../outage.ts'
import type { Model } from '../catalog/model.ts'
import { sourcesOf } from '../pricing/price-rule.ts'
import type { Consumption } from '../pricing/pricing.ts'
import type { ProviderResult } from '../provider.ts'
import { RouterError } from '../router-error.ts'
import { type CallResult, INLINE_BYTES, toChunks } from './call-store.ts'
import type { DrivenCall } from './live-calls.ts'

export interface HostingRequest {
  readonly model: Model
  readonly accountId: string
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

export interface KeepResultDeps {
  readonly hostAssets: HostAssets
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
export function hostResult(
  deps: KeepResultDeps,
  call: DrivenCall,
  result: ProviderResult,
): CopiedResult | Promise<CopiedResult> {
  const { body, contentType, usage, costMicros, inlineParts = null } = result
  const isJson = Buffer.isBuffer(body) && toBareType(contentType).endsWith('json')
  const output = isJson && needsOutput(call) ? parse(body) : null
  const consumption = { output, usage, costMicros }
  if (!isJson || !mayNameAssets({ body, inlineParts })) return { result, hasForeignUrls: false, consumption }
  return copyAssets(deps, call, { result, body, consumption })
}

/** A result without any address, which is most of those with inline bytes, need not even be read. */
export function mayNameAssets({ body, inlineParts = null }: Pick<HostingRequest, 'body' | 'inlineParts'>): boolean {
  return inlineParts !== null || body.includes('://')
}

async function copyAssets(
  { hostAssets, clock, log }: KeepResultDeps,
  { live, baseUrl }: DrivenCall,
  { result, body, consumption }: { result: ProviderResult; body: Buffer; consumption: Consumption },
): Promise<CopiedResult> {
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

/** `isKept`: the result can be replayed to whoever repeats the key. */
type StoredResult = Omit<CallResult, 'costMicros'> & { readonly isKept: boolean }

// About what a caller who waits for an answer bears on top.
const OUTAGE_MS = 20_000

/** Small bodies stay in memory, others become a blob; a refusal when they are too large or cannot be stored. */
export function storeResult(
  deps: KeepResultDeps,
  call: DrivenCall,
  { body, contentType }: ProviderResult,
): StoredResult | Promise<StoredResult | RouterError> {
  // Without a key nobody can ask for the result again: the bytes in memory are all that is needed.
  if (Buffer.isBuffer(body) && (body.length <= INLINE_BYTES || (!call.isKeyed && !call.isQueued))) {
    return { contentType, body: { kind: 'inline', bytes: body }, sizeBytes: body.length, isKept: true }
  }
  return storeBody(deps, call, { body, contentType })
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
    return { contentType, body: { kind: 'inline', bytes: body }, sizeBytes: body.length, isKept: false }
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
      return { contentType, body: { kind: 'inline', bytes: body }, sizeBytes: body.length, isKept: false }
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
