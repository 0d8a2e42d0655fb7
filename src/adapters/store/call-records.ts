/** What the stores of model calls have in common: how an end is written into a record and read from it, and when a pool is full. */
import type { CallBody, CallEnd, CallLimits, StoredRefusal } from '../../domain/models/calls/call-store.ts'

export type ResultFields = readonly [
  contentType: string | null,
  body: Uint8Array | null,
  hash: string | null,
  sizeBytes: number,
  costMicros: number | null,
  refusal: string | null,
]

export function toResultFields(end: CallEnd): ResultFields {
  if (end.kind === 'refusal') return toRefusalFields(end.refusal)
  const { contentType, body, sizeBytes, costMicros } = end.result
  const [bytes, hash] = body.kind === 'inline' ? [body.bytes, null] : [null, body.hash]
  return [contentType, bytes, hash, sizeBytes, costMicros, null]
}

export function toRefusalFields(refusal: StoredRefusal): ResultFields {
  return [null, null, null, 0, null, JSON.stringify(refusal)]
}

export function toCallEnd([contentType, bytes, hash, sizeBytes, costMicros, refusal]: ResultFields): CallEnd {
  if (refusal !== null) return { kind: 'refusal', refusal: JSON.parse(refusal) as StoredRefusal }
  const body = toCallBody(bytes, hash)
  return { kind: 'result', result: { contentType: contentType ?? '', body, sizeBytes, costMicros } }
}

/** Small bodies are stored in the row, large ones as a blob. */
export function toCallBody(bytes: Uint8Array | null, hash: string | null): CallBody {
  return hash === null ? { kind: 'inline', bytes: bytes ?? new Uint8Array() } : { kind: 'blob', hash }
}

/** What the calls under way of an account take of its limits. */
export interface PoolLoad {
  readonly running: number
  readonly costly: number
  readonly committedMicros: number
}

export type PoolVerdict = 'free' | 'calls_exhausted' | 'spend_exhausted'

/** Whether one more call fits. */
export function judgePool(
  load: PoolLoad,
  call: { readonly isCostly: boolean; readonly spendMicros: number },
  { maxCalls, maxCostlyCalls, ceilingMicros }: CallLimits,
): PoolVerdict {
  const isFull =
    (maxCalls !== null && load.running >= maxCalls) ||
    (call.isCostly && maxCostlyCalls !== null && load.costly >= maxCostlyCalls)
  if (isFull) return 'calls_exhausted'
  return ceilingMicros !== null && load.committedMicros + call.spendMicros > ceilingMicros ? 'spend_exhausted' : 'free'
}

/** A call that is admitted again after a crash takes a new hold; the old one was released. */
export function callHoldId(callId: string, attempt: number): string {
  return attempt === 0 ? `call:${callId}` : `call:${callId}:${attempt}`
}

/** Why a call that never reached a provider ended. */
export const CANCELED: StoredRefusal = {
  refusal: 'cancelled',
  message: 'the request was cancelled before it ran; nothing was charged',
  upstreamStatus: null,
  failures: null,
}
export const WAITED: StoredRefusal = {
  refusal: 'waited_too_long',
  message: 'the request waited longer than this service lets it; it never ran and nothing was charged',
  upstreamStatus: null,
  failures: null,
}

/** How long the id of a queued call is known after its result is gone, so that its owner gets 410 instead of 404. */
export const TOMBSTONE_MS = 7 * 24 * 60 * 60 * 1000
