/**
 * Where calls are stored. Admitting a call is one transaction: the key's record, credits, the number of calls under way, the
 * ceiling of committed spend and the hold, in this order, so that of two equal requests exactly one goes on. Ending it is one
 * transaction too: the answer, the charge, and what the call counted for in the limits of its account.
 */
import type { Micros } from '../../../../lib/text/usd.ts'
import type { BlobStore } from '../../assets/blob-store.ts'
import type { Json } from '../catalog/model.ts'
import type { Quote } from '../pricing/pricing.ts'
import type { RouterRefusal, ValidationFailure } from '../router-error.ts'

/** A key within an account, and what the request looked like that used it. */
interface CallKey {
  readonly key: string | null
  readonly fingerprint: string
}

export interface CallLimits {
  /** null: no limit. */
  readonly maxCalls: number | null
  /** Of calls that cost much, which count here as well. */
  readonly maxCostlyCalls: number | null
  readonly ceilingMicros: Micros | null
}

export interface NewCall extends CallKey {
  readonly id: string
  readonly accountId: string
  readonly modelId: string
  /** What addresses of ours in its result begin with. */
  readonly baseUrl: string
  readonly createdAt: Date
  readonly expiresAt: Date
  /** null: the model is free and nothing is set aside. */
  readonly holdMicros: Micros | null
  /** What counts against the ceiling. */
  readonly spendMicros: Micros
  readonly isCostly: boolean
  /** Whether an interrupted call of the same key may be submitted again under its old id. */
  readonly mayResubmit: boolean
}

/** The end of a call, for its caller and for whoever repeats its key. */
export type CallEnd =
  | { readonly kind: 'result'; readonly result: CallResult }
  | { readonly kind: 'refusal'; readonly refusal: StoredRefusal }

export interface CallResult {
  readonly contentType: string
  readonly body: CallBody
  readonly sizeBytes: number
  /** null: not reported, as for calls with the account's own provider key. */
  readonly costMicros: Micros | null
}

/** Small ones inline, others as a blob. */
export type CallBody =
  | { readonly kind: 'inline'; readonly bytes: Uint8Array }
  | { readonly kind: 'blob'; readonly hash: string }

// Small enough to be stored in the call's own record.
export const INLINE_BYTES = 65_536

export async function* toChunks(body: Buffer): AsyncGenerator<Uint8Array> {
  yield body
}

/** The whole body in memory. */
export async function readCallBody(blobs: Pick<BlobStore, 'open'>, body: CallBody): Promise<Buffer> {
  if (body.kind === 'inline') return Buffer.from(body.bytes)
  const chunks: Buffer[] = []
  for await (const chunk of await blobs.open(body.hash)) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

export interface StoredRefusal {
  readonly refusal: RouterRefusal
  readonly message: string
  readonly upstreamStatus: number | null
  readonly failures: readonly ValidationFailure[] | null
}

/** Identifies a stored call. */
export interface CallRef {
  readonly seq: number
  readonly id: string
  readonly accountId: string
}

/** All that another process needs to go on with a call. */
export interface CallProgress {
  readonly handle: Json
  readonly quote: Quote
  /** The account's own key is used: nothing is charged. */
  readonly isOwnKey: boolean
}

export interface Standing {
  readonly runningCalls: number
  readonly committedMicros: Micros
}

export type AdmitOutcome =
  | { readonly outcome: 'admitted'; readonly ref: CallRef; readonly standing: Standing }
  /** The key was used by a call that has ended: its end is replayed. */
  | { readonly outcome: 'done'; readonly id: string; readonly end: CallEnd; readonly standing: Standing }
  | { readonly outcome: 'running'; readonly ref: CallRef; readonly modelId: string; readonly standing: Standing }
  | { readonly outcome: 'waiting'; readonly ref: CallRef }
  | { readonly outcome: 'other_request' }
  | { readonly outcome: 'unusable' }
  | { readonly outcome: 'no_credits' }
  /** Only the input is wrong, as `isValid` said. */
  | { readonly outcome: 'invalid' }
  | { readonly outcome: 'calls_exhausted' | 'spend_exhausted'; readonly standing: Standing }

/**
 * What becomes of a call and its key at the end. `keep`: the end is remembered under the key. `forget`: the key is free again,
 * nothing is charged. `interrupt`: nobody knows whether a generation exists; the end, where there is one, is what the provider
 * answered, and is replayed to whoever repeats the key, which must not submit again. `spend`: it is charged, and its answer
 * cannot be replayed.
 */
export type CallFate = 'keep' | 'forget' | 'interrupt' | 'spend'

export interface CallFinish {
  readonly fate: CallFate
  readonly end: CallEnd | null
  /** What it costs; null: nothing. */
  readonly chargeMicros: Micros | null
  readonly memo: string
  readonly at: Date
  /** Until when the end may be replayed; null: as long as its record lives. */
  readonly replayUntil: Date | null
  /** A new end of the record's life; null: leave it. */
  readonly expiresAt: Date | null
}

export interface UnfinishedCall {
  readonly ref: CallRef
  readonly modelId: string
  readonly baseUrl: string
  readonly progress: CallProgress | null
  readonly isQueued: boolean
  readonly isKeyed: boolean
  readonly startedAt: Date
}

export interface CallStore {
  /** `isValid`: whether the input is valid. Known beforehand, and answered only after the checks that come before it. */
  admit(call: NewCall, limits: CallLimits, isValid: boolean): Promise<AdmitOutcome>
  /** Before the first poll. */
  keepProgress(ref: CallRef, progress: CallProgress): Promise<void>
  /** What was charged in the end; null when the call had ended already. */
  finish(ref: CallRef, finish: CallFinish): Promise<{ readonly chargedMicros: Micros | null } | null>
  /** Calls that were under way, in order, from behind `after`. */
  unfinished(after: number, limit: number): Promise<readonly UnfinishedCall[]>
  /** What the account has under way. */
  standing(accountId: string): Promise<Standing>
  /** Whether the account could pay so much; true for one that is not metered. */
  canPay(accountId: string, micros: Micros): Promise<boolean>
  /** Removes records past their life; returns how many. */
  sweep(now: Date): Promise<number>
}
