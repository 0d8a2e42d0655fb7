/** What both stores are asked about an idempotency key of a model call, and what they answer. */
import type { ResultFields } from '../call-records.ts'

export interface KeyedRequest {
  readonly accountId: string
  readonly key: string | null
  readonly fingerprint: string
  readonly now: number
}

/** `Call`: what the store knows of the call that the key stands for. */
export type KeyUse<Call> =
  | { readonly use: 'free' }
  | { readonly use: 'other_request' | 'unusable' }
  | { readonly use: 'done'; readonly id: string; readonly result: ResultFields }
  | { readonly use: 'running' | 'waiting'; readonly call: Call }
  /** `result`: what the provider answered; null: it said nothing. */
  | { readonly use: 'interrupted'; readonly call: Call; readonly result: ResultFields | null }
