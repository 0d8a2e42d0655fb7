/** Where queued calls wait. They become ordinary running calls when there is room for them. */
import type { TraceContext } from '../../../../lib/tracing/trace-context.ts'
import type { NewHook } from '../../webhooks/webhook.ts'
import type {
  AtAttempt,
  CallBody,
  CallEnd,
  CallLimits,
  HeldCall,
  NewCall,
  NewLease,
  NoCredits,
} from '../calls/call-store.ts'

interface NewRequest extends NewCall {
  readonly body: CallBody
  readonly bodyBytes: number
  /** Told of its end, beside the webhooks of its account. */
  readonly hook?: NewHook | null
  /** The trace that it belongs to; left out or null: nobody traces. */
  readonly trace?: TraceContext | null
}

export type EnqueueOutcome =
  | NoCredits
  | { readonly outcome: 'queued'; readonly position: number }
  /** The same key and request: what it got the first time. */
  | { readonly outcome: 'repeated'; readonly id: string }
  | { readonly outcome: 'other_request' | 'unusable' | 'invalid' | 'backlog_full' | 'keys_changed' }

const REQUEST_STATES = ['waiting', 'running', 'done', 'interrupted', 'unusable', 'canceled', 'gone'] as const
export type RequestState = (typeof REQUEST_STATES)[number]

/** A queued call as its owner may see it. */
export interface StoredRequest {
  readonly id: string
  readonly modelId: string
  readonly state: RequestState
  /** Requests of the account ahead of it; null unless it waits. */
  readonly position: number | null
  /** Set once it is done. */
  readonly end: CallEnd | null
}

export interface TakenRequest extends AtAttempt {
  readonly ref: HeldCall
  readonly modelId: string
  readonly baseUrl: string
  readonly isKeyed: boolean
  /** Whether its price was asked for when it was accepted: not so of a free model, nor with the account's own key. */
  readonly isPaid: boolean
  /** Somebody called it off while an earlier node had it. */
  readonly isStopAsked: boolean
  readonly body: CallBody
  /** The trace of its submit; null: nobody traced. */
  readonly trace: TraceContext | null
}

export type CancelRequestOutcome = 'canceled' | 'running' | 'ended' | 'not_found'

export interface RequestStore {
  enqueue(
    request: NewRequest,
    options: { readonly maxWaiting: number; readonly isValid: boolean },
  ): Promise<EnqueueOutcome>
  find(accountId: string, id: string): Promise<StoredRequest | null>
  /** The account's first that waits, made running, when its limits allow one more. */
  take(
    accountId: string,
    limits: CallLimits,
    options: { readonly now: Date; readonly lease: NewLease },
  ): Promise<TakenRequest | null>
  /**
   * Back to the front of the queue: it was surely not dispatched, or may be so again. `isLoss`: because the node that had taken it
   * is gone, which is counted. False: the call is not this node's any more, and nothing was written.
   */
  putBack(call: HeldCall, options: { readonly isLoss: boolean }): Promise<boolean>
  accountsWaiting(): Promise<readonly string[]>
  /** Ends one that waits. Of one that runs it is stored that it shall stop, which its holder finds when it renews. */
  cancel(accountId: string, id: string, at: Date, forgetAt: Date): Promise<CancelRequestOutcome>
  /** Ends requests that have waited since before `before`; returns how many. */
  timeOut(before: Date, at: Date, forgetAt: Date): Promise<number>
}
