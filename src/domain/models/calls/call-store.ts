/**
 * Where calls are stored. Admitting a call is one transaction: the key's record, credits, the number of calls under way, the
 * ceiling of committed spend and the hold, in this order, so that of two equal requests exactly one goes on. Ending it is one
 * transaction too: the answer, the charge, and what the call counted for in the limits of its account.
 *
 * Several nodes may share one store. A running call is held by one of them, for the time of a lease that it renews. Every write
 * about a running call names its holder: a node that has lost a call changes nothing and is told so.
 */

import type { Micros } from '../../../../lib/text/usd.ts'
import type { TraceContext } from '../../../../lib/tracing/trace-context.ts'
import type { BlobStore } from '../../assets/blob-store.ts'
import type { BudgetExcess } from '../../credits/budgets/budget.ts'
import type { Json } from '../catalog/model.ts'
import type { Quote } from '../pricing/pricing.ts'
import type { RouterRefusal, ValidationFailure } from '../router-error.ts'
import type { CallListQuery, ListedCall } from './call-list.ts'
import type { CallPlan, Served } from './call-plan.ts'
import type { ToldTask } from './told-task.ts'

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
  /** The API key that it came with; what it costs is noted under it. */
  readonly keyId?: string | null
  /** What its caller called it; left out: nothing. */
  readonly tag?: string | null
  /** The job that caused it; left out: none is known. */
  readonly jobId?: string | null
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
  /** Who may serve it; left out or null: the model's own provider alone. */
  readonly plan?: CallPlan | null
  /** The models of the plan at which the same holds. */
  readonly resubmittable?: readonly string[]
  /** The same call with fewer alternates, and so with less to set aside: tried in order where the account cannot afford the whole. */
  readonly narrower?: readonly NarrowerCall[]
  /** The number of the account's keys at providers under which it was opened; left out: they mean nothing for it. */
  readonly keysVersion?: number
}

type NarrowerCall = Pick<NewCall, 'holdMicros' | 'spendMicros' | 'isCostly' | 'plan'>

/** The end of a call, for its caller and for requests that repeat its key. */
export type CallEnd =
  | { readonly kind: 'result'; readonly result: CallResult }
  | { readonly kind: 'refusal'; readonly refusal: StoredRefusal }

export interface CallResult {
  readonly contentType: string
  readonly body: CallBody
  readonly sizeBytes: number
  /** null: not reported, as for calls with the account's own provider key. */
  readonly costMicros: Micros | null
  /** Left out or null: the model's own provider, and nothing was lost on the way. */
  readonly served?: Served | null
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
  /** When the same key may run; left out where the refusal is the end of the call. */
  readonly retryAfterSeconds?: number
}

/** Identifies a stored call. */
export interface CallRef {
  readonly seq: number
  readonly id: string
  readonly accountId: string
}

/** A running call, as the node that holds it names it. */
export interface HeldCall extends CallRef {
  readonly owner: string
  /** Rises whenever the call is taken, so that a node which lost a call and takes it again does not pass for its former self. */
  readonly fence: number
}

/** Who takes a call, and until when it is that node's unless it is renewed. */
export interface NewLease {
  readonly owner: string
  readonly until: Date
}

/** All that another process needs to go on with a call. */
export interface CallProgress {
  readonly handle: Json
  readonly quote: Quote
  /** The account's own key is used: nothing is charged. */
  readonly isOwnKey: boolean
  /** Of a call whose caller follows the task itself. */
  readonly told?: ToldTask
}

/** Identifies a call of an account: by its key, or by the task that its caller knows. */
export type ToldQuery = { readonly key: string } | { readonly task: string }

export interface ToldCall {
  readonly id: string
  readonly modelId: string
  readonly told: ToldTask
  /** As in its progress. */
  readonly isOwnKey: boolean
}

export interface Standing {
  readonly runningCalls: number
  readonly committedMicros: Micros
}

/** How far a call is in its plan. */
export interface AtAttempt {
  /** null: it has one attempt, at the model's own provider. */
  readonly plan: CallPlan | null
  /** Which of its attempts is the present one. */
  readonly attemptIndex: number
}

/** `budget`: the one that is used up; left out: the account has not enough credit. */
export interface NoCredits {
  readonly outcome: 'no_credits'
  readonly budget?: BudgetExcess
}

export type AdmitOutcome =
  | ({ readonly outcome: 'admitted'; readonly ref: HeldCall; readonly standing: Standing } & AtAttempt)
  /** The key was used by a call that has ended: its end is replayed. */
  | { readonly outcome: 'done'; readonly id: string; readonly end: CallEnd; readonly standing: Standing }
  | { readonly outcome: 'running'; readonly ref: CallRef; readonly modelId: string; readonly standing: Standing }
  | { readonly outcome: 'waiting'; readonly ref: CallRef }
  | { readonly outcome: 'other_request' }
  | { readonly outcome: 'unusable' }
  | NoCredits
  /** The account's keys at providers are others than when the call was opened: it has to be opened again. */
  | { readonly outcome: 'keys_changed' }
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

/** A running call that the node which drove it left in the middle, taken over by another. */
export interface UnfinishedCall extends AtAttempt {
  readonly ref: HeldCall
  readonly modelId: string
  readonly baseUrl: string
  readonly progress: CallProgress | null
  readonly isQueued: boolean
  readonly isKeyed: boolean
  readonly startedAt: Date
  /** Whether its row says that it may have reached its provider, for journals that are kept there. */
  readonly isSent: boolean
  readonly isStopAsked: boolean
  /** How often it was put back because the node that had taken it was lost. */
  readonly losses: number
  /** The trace of its submit; null: nobody traced, or it was not queued. */
  readonly trace: TraceContext | null
}

/** A call that was renewed, and whether somebody asked for its end meanwhile. */
interface RenewedCall {
  readonly id: string
  readonly isStopAsked: boolean
}

export interface AdmitOptions {
  /** Whether the input is valid. Known beforehand, and answered only after the checks that come before it. */
  readonly isValid: boolean
  readonly lease: NewLease
}

interface TakeLapsedOptions {
  readonly lease: NewLease
  /** Leases that ended before this count as lapsed. A later time than now takes calls of nodes that are known to be dead. */
  readonly lapsedBefore: Date
  /** The same for calls of the node that asks: it may have lost the answer to the write that took them. */
  readonly ownLapsedBefore: Date
  /** Calls that the asking node knows to be under way. */
  readonly except: readonly CallRef[]
  readonly limit: number
}

export interface CallStore {
  admit(call: NewCall, limits: CallLimits, options: AdmitOptions): Promise<AdmitOutcome>
  /** Before the first poll. False: the call is not this node's any more, and nothing was written. */
  keepProgress(call: HeldCall, progress: CallProgress): Promise<boolean>
  /**
   * Before the next attempt is sent: the row names it from then on. False: the call is not this node's any more, or is at another
   * attempt, and nothing was written.
   */
  beginAttempt(call: HeldCall, at: { readonly plan: CallPlan; readonly attemptIndex: number }): Promise<boolean>
  /** What was charged in the end; null when the call had ended already, or is not this node's any more. */
  finish(call: HeldCall, finish: CallFinish): Promise<{ readonly chargedMicros: Micros | null } | null>
  /** Holds these calls until then. A call that is missing in the answer has ended or is another node's. */
  renew(calls: readonly HeldCall[], until: Date): Promise<readonly RenewedCall[]>
  /** Lets the next node that looks for lapsed calls take these over. */
  release(calls: readonly HeldCall[]): Promise<void>
  /** Takes running calls over, in order: those that nobody holds, and those whose leases have lapsed. */
  takeLapsed(options: TakeLapsedOptions): Promise<readonly UnfinishedCall[]>
  isRunning(call: CallRef): Promise<boolean>
  /** null: the account has no such call, or its caller knows no task of it. */
  findTold(accountId: string, query: ToldQuery): Promise<ToldCall | null>
  /** Newest first. */
  list(accountId: string, query: CallListQuery): Promise<readonly ListedCall[]>
  /** What the account has under way. */
  standing(accountId: string): Promise<Standing>
  /** Whether the account could pay so much; true for one that is not metered. */
  canPay(accountId: string, micros: Micros): Promise<boolean>
  /** Removes records past their life; returns how many. */
  sweep(now: Date): Promise<number>
}
