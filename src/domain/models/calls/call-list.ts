/** The calls of an account that are on record: those that wait or run, those of the queue, and those that came with a key. */
import type { Micros } from '../../../../lib/text/usd.ts'
import type { RouterRefusal } from '../router-error.ts'

/** `gone`: its result has aged out. `interrupted`: nobody knows whether a generation exists. */
export const CALL_STATUSES = ['queued', 'running', 'succeeded', 'failed', 'canceled', 'interrupted', 'gone'] as const
export type CallStatus = (typeof CALL_STATUSES)[number]

export interface ListedCall {
  /** Order of arrival. */
  readonly seq: number
  readonly id: string
  readonly modelId: string
  readonly status: CallStatus
  readonly isQueued: boolean
  readonly createdAt: Date
  readonly finishedAt: Date | null
  /** null: not known, or not reported. */
  readonly costMicros: Micros | null
  /** The job that caused it; null: none is known. */
  readonly jobId: string | null
  readonly refusal: { readonly refusal: RouterRefusal; readonly message: string } | null
}

export interface CallListQuery {
  /** `seq` of the last call of the page before; null: from the newest on. */
  readonly before: number | null
  readonly limit: number
  readonly modelId: string | null
  readonly status: CallStatus | null
}
